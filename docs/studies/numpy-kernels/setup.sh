# Check the requirement of the study; report how to meet it if it is missing. Changes nothing.
"${PYTHON:-python3}" -I kernels.py check 2>/dev/null && exit
echo "numpy-kernels study: ${PYTHON:-python3} has no NumPy: apt-get install python3-numpy, or set PYTHON" >&2
exit 1
