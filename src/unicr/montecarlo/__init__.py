"""The paper's engine, which needs only log μ and samples: a searched radius for any density.

`unicr.montecarlo.engine` has it; here is what can be said to it without loading torch.
"""

from unicr.montecarlo._settings import MonteCarlo, MonteCarloResult

__all__ = ["MonteCarlo", "MonteCarloResult"]
