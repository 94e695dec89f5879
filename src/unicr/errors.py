"""The errors unicr raises on purpose: one root, so that a caller can catch them all."""


class UnicrError(Exception):
    """Root of every error that unicr raises on purpose."""


class NoiseError(UnicrError, ValueError):
    """A noise that cannot be built: a bad parameter, or a density that cannot be handled."""


class SpecError(UnicrError, ValueError):
    """A text (a noise, a norm, a file reference) that does not parse."""


class RadiusError(UnicrError, ValueError):
    """A radius that was asked for with impossible probabilities, dimension or norm."""


class MissingExtraError(UnicrError, ImportError):
    """An optional part is not installed; the message names the extra to install."""


class ModelError(UnicrError, ValueError):
    """A classifier that cannot be loaded, or that gives no usable label for some batch."""


class DataError(UnicrError, ValueError):
    """A dataset that cannot be read, fetched or understood."""


class CertifyError(UnicrError, ValueError):
    """A certification that cannot be made as asked: settings, inputs or samples that do not fit."""


class RunError(UnicrError, ValueError):
    """A run folder that cannot be written, read or resumed."""
