"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.radius._direction import search_direction as search_direction
from unicr.radius._grade import find_weakest as find_weakest
from unicr.radius._radius import prove_directly as prove_directly
from unicr.radius._result import name_guarantee as name_guarantee
from unicr.radius._worst import read_from_below as read_from_below
from unicr.radius.theorems import NOTHING_PROVED as NOTHING_PROVED
from unicr.radius.theorems import Proof as Proof
from unicr.radius.theorems import find_exact_bound as find_exact_bound
from unicr.radius.theorems import prove as prove
from unicr.radius.theorems._base import factor_of_inclusion as factor_of_inclusion
from unicr.radius.theorems.two_laws import check_two_laws as check_two_laws
from unicr.radius.theorems.two_laws import load_tables as load_tables
