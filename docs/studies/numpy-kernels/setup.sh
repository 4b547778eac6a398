# What the study needs, with what to do about it. Changes nothing.
"${PYTHON:-python3}" -I kernels.py check 2>/dev/null && exit
echo "numpy-kernels study: ${PYTHON:-python3} has no NumPy: apt-get install python3-numpy, or set PYTHON" >&2
exit 1
