"""`python -m eqlearn.cli`, the same as `eqlearn`."""

import sys

from eqlearn.cli import main

sys.exit(main())
