"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.law._length import LogLength as LogLength
from unicr.law._quadrature import TabulatedDensity as TabulatedDensity
from unicr.law._quadrature._logdensity import HINT as HINT
from unicr.law._stored import read_floats as read_floats
from unicr.law._stored import read_number as read_number
from unicr.law._stored import require as require
from unicr.law._stored import table_from_data as table_from_data
from unicr.law._stored import table_to_data as table_to_data
from unicr.law._stored import write_floats as write_floats
from unicr.law._table import tabulate as tabulate
