# C++ exceptions, in the C++ library of GCC. See docs/profiles/libstdcxx.md.
when libstdcxx:throw
libstdcxx:throw name="throw" level=warn exception=arg0:hex type=arg1:hex
libstdcxx:catch name="catch" exception=arg0:hex type=arg1:hex
libstdcxx:rethrow name="rethrow" level=warn exception=arg0:hex type=arg1:hex
