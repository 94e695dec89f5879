"""Golden values: radii, laws of the sampler and certificates that a rebuild must keep.

`python -m tests.golden` makes the files again; do that only where a change is meant and explained.

Rows whose searched radius was raised, since it was itself a lower bound of the truth:
- near p_A = 1/2 and for balls they hold an independent value (`truth.py`);
- four rows of densities whose log-ratio may turn (Laplace–Gaussian mix in one dimension and at
  150,528, Student, cut Cauchy) rose by up to 2.3e-6 when cells became finer. The true radius of
  the first, by a sum over 8 million cells, is 3.18976; the row has 3.189746.
"""
