"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.radius._direction import search as search
from unicr.radius._grade import weakest as weakest
from unicr.radius._result import guarantee_of as guarantee_of
from unicr.radius._worst import from_below as from_below
from unicr.radius.theorems import NOTHING_PROVED as NOTHING_PROVED
from unicr.radius.theorems import Proof as Proof
from unicr.radius.theorems import exact_bound as exact_bound
from unicr.radius.theorems import prove as prove
from unicr.radius.theorems._base import inclusion as inclusion
from unicr.radius.theorems.two_laws import check_two_laws as check_two_laws
