# Java virtual machines with HotSpot's probes: OpenJDK 8 and newer, as the distributions build it.
# Method spans are in hotspot-methods. See docs/profiles/hotspot.md.
when hotspot:gc__begin

# Collections, and what stops the threads for them
hotspot:gc__begin..gc__end name="GC" full=arg0:bool
hotspot:mem__pool__gc__begin|mem__pool__gc__end counter=arg5 name="{arg2:str(arg3)} used"
hs_private:safepoint__begin..safepoint__end -
hotspot:vmops__begin..vmops__end name="VM {operation}" operation=arg0:str(arg1) mode=arg2
hotspot:vmops__request name="VM request" operation=arg0:str(arg1) mode=arg2

# Threads
hotspot:thread__start name="thread start" thread=arg0:str(arg1) id=arg2 tid=arg3 daemon=arg4:bool
hotspot:thread__stop name="thread stop" thread=arg0:str(arg1) id=arg2 tid=arg3 daemon=arg4:bool
hotspot:thread__sleep__begin..thread__sleep__end name="sleep" ms=arg0 end.interrupted=arg0:bool
hotspot:thread__park__begin..thread__park__end name="park" parker=arg0:hex absolute=arg1:bool time=arg2
hotspot:thread__unpark name="unpark" parker=arg0:hex
hotspot:thread__yield name="yield"

# Monitors: with -XX:+DTraceMonitorProbes
hotspot:monitor__contended__enter..monitor__contended__entered name="monitor enter {class}" \
    class=arg2:str(arg3) monitor=arg1:hex
hotspot:monitor__contended__exit name="monitor exit" class=arg2:str(arg3) monitor=arg1:hex
hotspot:monitor__wait..monitor__waited name="monitor wait {class}" class=arg2:str(arg3) monitor=arg1:hex ms=arg4
hotspot:monitor__notify name="monitor notify" class=arg2:str(arg3) monitor=arg1:hex
hotspot:monitor__notifyAll name="monitor notifyAll" class=arg2:str(arg3) monitor=arg1:hex

# Classes and code
hotspot:class__loaded name="class load" class=arg0:str(arg1) shared=arg3:bool
hotspot:class__unloaded name="class unload" class=arg0:str(arg1)
hotspot:class__initialization__clinit..class__initialization__end|class__initialization__error \
    name="class init {class}" class=arg0:str(arg1)
hotspot:class__initialization__concurrent name="class init waits" class=arg0:str(arg1)
hotspot:method__compile__begin..method__compile__end name="compile {class}.{method}" class=arg2:str(arg3) \
    method=arg4:str(arg5) signature=arg6:str(arg7) compiler=arg0:str(arg1) end.success=arg8:bool
hotspot:compiled__method__load name="code load" level=debug class=arg0:str(arg1) method=arg2:str(arg3) \
    signature=arg4:str(arg5) address=arg6:hex bytes=arg7
hotspot:compiled__method__unload name="code unload" level=debug class=arg0:str(arg1) method=arg2:str(arg3) \
    signature=arg4:str(arg5)

# Objects: with -XX:+DTraceAllocProbes
hotspot:object__alloc name="alloc" class=arg1:str(arg2)

# The machine itself
hotspot:vm__init__begin..vm__init__end name="VM init"
hotspot:vm__shutdown name="VM shutdown"
