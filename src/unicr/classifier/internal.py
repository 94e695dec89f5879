"""What other parts of unicr use of this package and users should not: it may change."""

from typing import TYPE_CHECKING

from unicr.classifier._base import Tally as Tally
from unicr.classifier._base import labels_of as labels_of
from unicr.classifier._load import Trust as Trust
from unicr.classifier._load import put_weights as put_weights
from unicr.classifier._load import read_weights as read_weights
from unicr.classifier._load import split_devices as split_devices
from unicr.classifier._load import try_device as try_device
from unicr.classifier.adapters import selective
from unicr.classifier.adapters.module import evaluating as evaluating
from unicr.extras import lazy_names

if TYPE_CHECKING:
    from unicr.classifier.adapters.builtin import RESNETS as RESNETS
else:  # beside networks, which are subclasses of torch's
    __getattr__ = lazy_names("unicr.classifier", {"RESNETS": "adapters.builtin"})

SELECTOR_FILE, read_selector = selective.FILE, selective.read
