# The daemons of libvirt, and programs that talk to them. See docs/profiles/libvirt.md.
when libvirt:rpc_server_client_msg_rx
libvirt:rpc_server_client_new name="client new" client=arg0:hex socket=arg1:hex
libvirt:rpc_server_client_dispose name="client gone" client=arg0:hex
libvirt:rpc_server_client_msg_rx name="server receives" client=arg0:hex bytes=arg1 program=arg2:hex \
    procedure=arg4 type=arg5:i32 status=arg6:i32 serial=arg7
libvirt:rpc_server_client_msg_tx_queue name="server sends" client=arg0:hex bytes=arg1 program=arg2:hex \
    procedure=arg4 type=arg5:i32 status=arg6:i32 serial=arg7
libvirt:rpc_client_new name="connection new" connection=arg0:hex socket=arg1:hex
libvirt:rpc_client_dispose name="connection gone" connection=arg0:hex
libvirt:rpc_client_msg_tx_queue name="client sends" connection=arg0:hex bytes=arg1 program=arg2:hex \
    procedure=arg4 type=arg5:i32 status=arg6:i32 serial=arg7
libvirt:rpc_client_msg_rx name="client receives" connection=arg0:hex bytes=arg1 program=arg2:hex \
    procedure=arg4 type=arg5:i32 status=arg6:i32 serial=arg7
libvirt:rpc_socket_new name="socket new" socket=arg0:hex fd=arg1:i32 pid=arg3:i32 local=arg4:str remote=arg5:str
libvirt:rpc_socket_dispose name="socket gone" socket=arg0:hex
libvirt:rpc_keepalive_timeout name="keepalive timeout" level=warn client=arg1:hex

# In libvirtd itself and in each daemon of the kind
when libvirt:rpc_server_client_auth_allow
libvirt:rpc_server_client_auth_allow name="auth allow" client=arg0:hex method=arg1 identity=arg2:str
libvirt:rpc_server_client_auth_deny name="auth deny" level=warn client=arg0:hex method=arg1 identity=arg2:str
libvirt:rpc_server_client_auth_fail name="auth fail" level=warn client=arg0:hex method=arg1
