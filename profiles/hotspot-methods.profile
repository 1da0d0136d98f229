# Every call of a Java method. Only if named: it needs a JVM with -XX:+DTraceMethodProbes -XX:-TieredCompilation.
# See docs/profiles/hotspot.md.
hotspot:method__entry..method__return name="{class}.{method}" class=arg1:str(arg2) method=arg3:str(arg4) \
    signature=arg5:str(arg6) end.class=arg1:str(arg2) end.method=arg3:str(arg4) end.signature=arg5:str(arg6)
