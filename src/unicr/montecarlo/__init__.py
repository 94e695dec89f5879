"""The paper's engine, which needs only log μ and samples: a searched radius for any density.

`unicr.montecarlo.engine` has it; here is what can be said to it without loading torch.
"""

<<<<<<< HEAD
from unicr.montecarlo._settings import Estimator, Found, Method, MonteCarlo

__all__ = ["Estimator", "Found", "Method", "MonteCarlo"]
=======
from unicr.montecarlo._settings import MonteCarlo, MonteCarloResult

__all__ = ["MonteCarlo", "MonteCarloResult"]
>>>>>>> main
