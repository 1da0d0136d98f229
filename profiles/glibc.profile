# The C library and its loader, as far as they are built with --enable-systemtap. Only if named: nearly every
# process has them. See docs/profiles/glibc.md.

# Memory: the allocator goes to the kernel, or has trouble
libc:memory_sbrk_more name="sbrk more" end=arg0:hex bytes=arg1
libc:memory_sbrk_less name="sbrk less" end=arg0:hex bytes=arg1
libc:memory_heap_new name="heap new" heap=arg0:hex bytes=arg1
libc:memory_heap_free name="heap free" heap=arg0:hex bytes=arg1
libc:memory_heap_more name="heap more" heap=arg0:hex bytes=arg1
libc:memory_heap_less name="heap less" heap=arg0:hex bytes=arg1
libc:memory_arena_new name="arena new" arena=arg0:hex bytes=arg1
libc:memory_arena_reuse name="arena reuse" arena=arg0:hex old=arg1:hex
libc:memory_arena_reuse_wait name="arena wait" level=warn mutex=arg0:hex arena=arg1:hex old=arg2:hex
libc:memory_arena_reuse_free_list name="arena reuse free" arena=arg0:hex
libc:memory_arena_retry name="arena retry" bytes=arg0 arena=arg1:hex
libc:memory_mallopt name="mallopt" parameter=arg0:i32 value=arg1:i32
libc:memory_mallopt_free_dyn_thresholds name="malloc thresholds" mmap=arg0 trim=arg1
libc:memory_tcache_double_free name="double free?" level=error address=arg0:hex bin=arg1:i32

# Jumps
libc:setjmp name="setjmp" level=debug buffer=arg0:hex savemask=arg1:i32 to=arg2:hex
libc:longjmp name="longjmp" buffer=arg0:hex value=arg1:i32 to=arg2:hex

# Threads and locks
libc:pthread_create name="pthread_create" thread=arg0:hex function=arg2:hex argument=arg3:hex
libc:pthread_start name="pthread_start" thread=arg0:hex function=arg1:hex argument=arg2:hex
libc:pthread_join..pthread_join_ret name="pthread_join" thread=arg0:hex end.result=arg1:i32
libc:lll_lock_wait_private name="lock wait" lock=arg0:hex
libc:lll_lock_wait name="lock wait" lock=arg0:hex
libc:cond_wait name="cond_wait" cond=arg0:hex mutex=arg1:hex
libc:cond_signal name="cond_signal" cond=arg0:hex
libc:cond_broadcast name="cond_broadcast" cond=arg0:hex

# The loader: dlopen and dlclose
rtld:init_start..init_complete name="ld.so init" -
rtld:map_start name="ld.so map" namespace=arg0
rtld:map_complete name="ld.so mapped" namespace=arg0
rtld:map_failed name="ld.so map failed" level=warn namespace=arg0
rtld:reloc_start name="ld.so relocate" namespace=arg0
rtld:reloc_complete name="ld.so relocated" namespace=arg0
rtld:unmap_start..unmap_complete name="ld.so unmap" namespace=arg0
