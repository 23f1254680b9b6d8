#!/bin/bash
# Installs eqlearn into the active environment, without sudo. EQLEARN_SOURCE is where from: a folder, a wheel, or
# an address such as git+https://HOST/OWNER/eqlearn@v0.2.0. It has no default: the name alone might be somebody
# else's package on an index. Whoever submits writes the address here.
set -euo pipefail
: "${EQLEARN_SOURCE:?set it to where eqlearn is installed from, such as git+https://HOST/OWNER/eqlearn@v0.2.0}"
python -m pip install "$EQLEARN_SOURCE"
python -c "import eqlearn; print('eqlearn', eqlearn.__version__)"
