#!/bin/sh
# Builds the documentation site into build-docs/html. Dead links, and pages that no menu leads to, are errors.
#   scripts/docs.sh [PYTHON [KILN]]    PYTHON: an interpreter that has kiln[docs], KILN: the tool;
#                                      without them an environment is made in build-docs, with the package and its tool
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh
python=${1:-}
if [ -z "$python" ]; then
    need_packages "$BUILD_PACKAGES python3 python3-venv"
    say "installing the package and Sphinx into build-docs/env"
    python3 -m venv build-docs/env
    run_quietly build-docs/env/bin/pip install --disable-pip-version-check '.[docs]'
    python=build-docs/env/bin/python
fi
tool=${2:-$(dirname "$python")/kiln}
say "building the site"
run_quietly "$python" docs/site/stage.py "$tool" build-docs/source
run_quietly "$python" -m sphinx -W --keep-going -q -j auto build-docs/source build-docs/html
say "build-docs/html/index.html"
