# Runs in the Debian that packaging/packages/trial started. Stops at the first thing that is not as it should be, and says where.
set -eEuo pipefail
trap 'echo "not so: line $LINENO: $BASH_COMMAND" >&2' ERR
said() { printf '  %s\n' "$*"; }
running() { watchfloor fleet --json | python3 -c 'import json, sys; print(*[a["id"] for a in json.load(sys.stdin)["agents"] if a["state"] == "running"])'; }
until_true() { for _ in $(seq 120); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.5; done; "$@"; }
# Reads to the end: a program whose reader has gone ends by SIGPIPE, and with it the pipeline.
has() { local read; read=$(cat); grep -q "$@" <<<"$read"; }
remove() { apt-get "$1" -y -q watchfloor-guard watchfloor watchfloor-console 2>&1; }

until_true systemctl is-system-running
# An ordinary user may mount /proc in a sandbox only where nothing lies over a part of it.
umount -l /proc/sys
useradd -m -s /bin/bash ada
# Before the first agent starts: a home folder that is new since then is something to look at after its kill.
for role in viewer operator responder auditor; do useradd -m -G "watchfloor-$role" "the-$role"; done
getent group sudo >/dev/null || groupadd sudo
useradd -m -G sudo boss
echo 'boss:open sesame' | chpasswd

watchfloor --version
[ "$(systemctl is-enabled watchfloor.service || true)" = disabled ]
code=0; watchfloor doctor >/dev/null || code=$?; [ $code = 0 ] || [ $code = 8 ]

# An ordinary user: an instance of their own, an agent in a sandbox, confirmed dead.
loginctl enable-linger ada
until_true test -S "/run/user/$(id -u ada)/bus"
cat >/home/ada/use.sh <<'USE'
set -eu
cd; export HOME=/home/ada XDG_RUNTIME_DIR=/run/user/$(id -u)
agent=$(watchfloor run --sandbox bubblewrap -- sleep 1000)
code=0; watchfloor kill "$agent" --reason trial --json >kill.json || code=$?
[ $code = 0 ] || [ $code = 8 ] || { echo "kill: exit $code"; cat kill.json; exit 1; }
python3 -c 'import json; said = json.load(open("kill.json")); said = said.get("receipt", said); assert said["verified_zero"] is True, said'
Xvfb :7 -screen 0 1280x800x24 >/dev/null 2>&1 & server=$!
sleep 1; DISPLAY=:7 watchfloor >window.log 2>&1 & window=$!
for _ in $(seq 240); do if DISPLAY=:7 xdotool search --onlyvisible --name '^Watchfloor' getwindowname >name.txt 2>/dev/null; then break; fi; sleep 0.5; done
kill $window $server || true; grep -q Watchfloor name.txt || { echo "no window"; cat window.log; exit 1; }
USE
systemd-run --quiet --wait --pipe --uid=ada bash /home/ada/use.sh
said "an ordinary user's agent: confirmed dead; the window opens"

# The host's own instance: its sockets alone, and the first command starts it. Then two services, the guard under its own account.
active() { systemctl is-active --quiet "$1"; }
systemctl enable --now --quiet watchfloor.socket watchfloor-members.socket watchfloor-guard.socket
! active watchfloor && ! active watchfloor-guard
runuser -u the-viewer -- watchfloor fleet >/dev/null
active watchfloor && active watchfloor-guard
stop_all() { systemctl stop watchfloor.socket watchfloor-members.socket watchfloor-guard.socket watchfloor watchfloor-guard; }
systemctl stop watchfloor.socket watchfloor-members.socket watchfloor
code=0; runuser -u the-viewer -- watchfloor fleet 2>stopped.txt || code=$?; [ $code = 6 ] && ! active watchfloor || { cat stopped.txt; exit 1; }
systemctl enable --now --quiet watchfloor-guard watchfloor
kill -KILL "$(systemctl show -P MainPID watchfloor)"
watchfloor run --wait -- /bin/true # waits for its successor
systemctl stop watchfloor-guard
runuser -u the-viewer -- watchfloor status >/dev/null # the socket of members starts it
until_true active watchfloor-guard
said "the first command starts the host's instance; one that was stopped stays so; a command meanwhile waits"
guard() { systemctl show -P MainPID watchfloor-guard; }
[ "$(stat -c %U "/proc/$(guard)")" = watchfloor-guard ]
systemd-analyze security --no-pager --threshold=49 watchfloor-guard.service | tail -n 1 # below 5.0 is "OK"
systemd-analyze security --no-pager --threshold=49 watchfloor.service | tail -n 1
# What the units bind must not bind agents: they open the devices that their account may open, debug, and have sandboxes of their own.
bound=/proc/$(systemctl show -P MainPID watchfloor)
[ ! -e "$bound/root/dev/fuse" ] && ! nsenter --target "${bound#/proc/}" --mount sh -c ': >/proc/sys/kernel/domainname' 2>/dev/null
watchfloor run --wait -- /usr/bin/python3 -c 'import os; os.open("/dev/fuse", os.O_RDWR)'
watchfloor run --wait -- /usr/bin/python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)' # PTRACE_TRACEME
watchfloor run --wait -- /usr/bin/grep -q '^NoNewPrivs:.*1' /proc/self/status
! watchfloor run --wait -- /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' >packet.txt 2>&1
grep -q 'not supported\|not permitted' packet.txt || { cat packet.txt; exit 1; }
[ -z "$(systemctl list-units --all --plain --no-legend 'watchfloor-agent-*')" ] # each ended once its agent was in the guard's hands
# The proxy, its helpers in an agent's network, and a sandbox.
cat >/tmp/ask.py <<'ASK'
import urllib.error, urllib.request
try:
    urllib.request.urlopen("http://not-allowed.test/", timeout=30)
except urllib.error.HTTPError as refused:
    print("the proxy said", refused.code, flush=True)
ASK
watchfloor run --wait --network PROXIED --sandbox bubblewrap -- /usr/bin/python3 -c "$(cat /tmp/ask.py)" | has 'the proxy said 403'
agent=$(watchfloor run --sandbox bubblewrap -- sleep 1000)
watchfloor kill "$agent" --reason trial >kill.txt || [ $? = 8 ]
grep -q '^All processes of 1 agent are dead' kill.txt
said "both units are rated OK; agents keep devices, debuggers, the proxy and sandboxes"
# A judged call changes a file of its session: a copy is kept, and put back.
cat >/var/lib/watchfloor/policy.json <<'RULES'
{"permissions": {"allow": ["shell(echo:*)", "file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)"]}}
RULES
cat >/tmp/change.py <<'CHANGE'
import os, sys, time
sys.path.insert(0, os.environ["WATCHFLOOR_TOYS"])
import client
open("kept.txt", "w").write("before\n")
print(client.Agent().execute("shell", "echo after > kept.txt"), flush=True)
time.sleep(1000)
CHANGE
agent=$(watchfloor run -- /usr/bin/python3 -c "$(cat /tmp/change.py)")
holds() { [ "$(cat /var/lib/watchfloor/workspaces/*/kept.txt)" = "$1" ]; }
until_true holds after || { watchfloor agent output "$agent"; exit 1; }
record=$(watchfloor rollback list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["records"][0]["record_id"])')
watchfloor rollback restore "$record" --reason trial
holds before
watchfloor kill "$agent" --reason trial >kill.txt || [ $? = 8 ]
rm /var/lib/watchfloor/policy.json
said "a file that a judged call changed is put back"
agent=$(watchfloor run -- sleep 1001)
supervisor=$(systemctl show -P MainPID watchfloor)
systemctl restart watchfloor-guard
[ "$(running)" = "$agent" ] && [ "$(systemctl show -P MainPID watchfloor)" = "$supervisor" ]
before=$(guard)
! setpriv --reuid 65534 --regid 65534 --clear-groups kill -9 "$before" 2>/dev/null
kill -STOP "$before"
replaced() { [ "$(guard)" != "$before" ] && [ "$(guard)" != 0 ] && [ "$(systemctl is-active watchfloor-guard)" = active ]; }
until_true replaced
[ "$(running)" = "$agent" ]
said "a guard that is restarted, and one that hangs, is replaced; the agent stays in its hands"

# Roles by group: one allowed thing and one refused thing of each.
refused() { # ACCOUNT WORD COMMAND...: exit 4 with the sentence
  local account=$1 word=$2 code=0
  shift 2
  runuser -u "$account" -- "$@" >refused.txt 2>&1 || code=$?
  [ $code = 4 ] && grep -q "$word" refused.txt || { echo "$account: $* gave $code"; cat refused.txt; return 1; }
}
runuser -u the-viewer -- watchfloor fleet --json | has "$agent"
runuser -u the-viewer -- watchfloor status >status.txt
grep -q 'your role: viewer' status.txt && grep -q 'instance [0-9a-f]\{8\}' status.txt
runuser -u the-viewer -- watchfloor config check 2>&1 | has 'only root reads it: /var/lib/watchfloor/settings.json'
refused the-viewer 'the role responder' watchfloor kill "$agent" --reason trial
runuser -u the-auditor -- watchfloor receipt list >/dev/null
runuser -u the-auditor -- watchfloor audit verify | has '^log intact: '
runuser -u the-auditor -- sh -c 'cd /home/the-auditor && watchfloor audit export log.jsonl'
refused the-auditor 'sudo watchfloor logs' watchfloor logs
runuser -u the-viewer -- watchfloor config show heartbeat_s --origin | has heartbeat_s
[ -s /home/the-auditor/log.jsonl ]
refused the-viewer 'watchfloor-auditor' sh -c 'cd /home/the-viewer && watchfloor audit export log.jsonl'
refused the-auditor 'the role operator' watchfloor run -- sleep 1
started=$(runuser -u the-operator -- watchfloor run -- sleep 1002)
[ "$(ps -o uid= -C sleep | sort -u | tr -d ' ')" = 65534 ] || { ps -o uid,args -C sleep; exit 1; }
cat >/home/the-operator/rearm.py <<'ASK'
import http.client, json, socket, sys
asked = http.client.HTTPConnection("watchfloor")
asked.sock = socket.socket(socket.AF_UNIX)
asked.sock.connect("/run/watchfloor/operator.sock")
asked.request("POST", "/api/kill-switch", json.dumps({"action": "rearm", "reason": "trial"}))
said = json.loads(asked.getresponse().read())
print(said["error"])
sys.exit(said["exit_code"])
ASK
refused the-operator 'Only root' python3 /home/the-operator/rearm.py

# polkit: an administrator types a password at the member's terminal; then a rule stands for them.
sed 's#/api/kill-switch#/api/settings#; s#{"action": "rearm", "reason": "trial"}#{"key": "heartbeat_s", "value": 11, "reason": "trial"}#; s#^print.*#print(said.get("error", "changed"))#; s#said."exit_code".#said.get("exit_code", 0)#' \
  /home/the-operator/rearm.py >/home/the-operator/settings.py
refused the-operator 'polkit did not allow it' python3 /home/the-operator/settings.py
python3 /root/type_password.py the-operator 'a guess' /home/the-operator/settings.py >typed.txt
grep -q 'Authenticating as: boss' typed.txt && grep -q 'polkit did not allow it' typed.txt || { cat typed.txt; exit 1; }
[ "$(watchfloor config show heartbeat_s --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["settings"]["heartbeat_s"])')" = 30.0 ]
python3 /root/type_password.py the-operator 'open sesame' /home/the-operator/settings.py >typed.txt
grep -q 'asks to change the settings of Watchfloor' typed.txt && grep -q 'changed' typed.txt || { cat typed.txt; exit 1; }
watchfloor audit tail -n 50 --json | has 'polkit.allowed'
said "polkit asks for an administrator's password at a member's terminal; a wrong one changes nothing"
sed -i 's/"value": 11/"value": 12/' /home/the-operator/settings.py
cat >/etc/polkit-1/rules.d/50-trial.rules <<'RULE'
polkit.addRule(function(action, subject) {
  if (action.id == "io.watchfloor.settings" && subject.user == "the-operator") return polkit.Result.YES;
});
RULE
chmod 644 /etc/polkit-1/rules.d/50-trial.rules
may_change() { [ "$(runuser -u the-operator -- python3 /home/the-operator/settings.py)" = changed ]; }
until_true may_change
refused the-operator 'polkit did not allow it' python3 /home/the-operator/rearm.py
watchfloor audit tail -n 50 --json | has 'polkit.allowed'
said "polkit lets a member do what its rules name, and nothing else"
code=0; runuser -u the-responder -- watchfloor kill "$started" --reason trial >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q 'All processes of 1 agent are dead' kill.txt
refused the-responder 'the role operator' watchfloor run -- sleep 1
# An account in no group cannot even enter the folder, and has an instance of its own.
! runuser -u ada -- ls /run/watchfloor 2>/dev/null
runuser -u ada -- watchfloor fleet --json | has -v "$agent"
watchfloor audit tail -n 50 --json | has 'route.refused'
said "roles by group: each does what it may, and is told what it may not"

# A broken drop-in: named, nothing starts, kills work; then it goes.
install -d -m 755 /etc/watchfloor/conf.d
printf '[budgets\n' >/etc/watchfloor/conf.d/broken.toml
! watchfloor config check >broken.txt
grep -q 'broken.toml:1:' broken.txt
systemctl restart watchfloor
! watchfloor run -- sleep 1 2>broken.txt
grep -q 'No agent starts: .*broken.toml:1:' broken.txt
[ "$(running)" = "$agent" ]
code=0; watchfloor kill "$agent" --reason trial >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q '^All processes of 1 agent are dead' kill.txt
rm /etc/watchfloor/conf.d/broken.toml
systemctl restart watchfloor
agent=$(watchfloor run -- sleep 1001)
said "a broken drop-in is named: no agent starts, and kills work"

# A full disk: nothing starts, kills work, and the records are written once there is room.
stop_all
mkdir /mnt/full
mount -t tmpfs -o "mode=711,size=$(($(du -sm /var/lib/watchfloor | cut -f1) + 16))m" tmpfs /mnt/full
cp -a /var/lib/watchfloor/. /mnt/full/
mount --bind /mnt/full /var/lib/watchfloor
systemctl start watchfloor-guard watchfloor
[ "$(running)" = "$agent" ]
dd if=/dev/zero of=/mnt/full/fill bs=64k status=none 2>/dev/null || true
! watchfloor run -- sleep 1 2>full.txt
grep -q 'disk is full\|No space left on device' full.txt || { cat full.txt; exit 1; }
code=0; watchfloor kill "$agent" --reason 'full disk' >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q '^All processes of 1 agent are dead' kill.txt
rm /mnt/full/fill
recorded() { watchfloor audit tail -n 50 | has 'kill.pressed .*full disk' && watchfloor receipt list | has 'full disk'; }
until_true recorded
watchfloor audit verify | has '^log intact: '
! journalctl -u watchfloor --no-pager | has Traceback
stop_all
umount -l /var/lib/watchfloor
cp -a /mnt/full/. /var/lib/watchfloor/
umount /mnt/full
rmdir /mnt/full
systemctl start watchfloor-guard watchfloor
agent=$(watchfloor run -- sleep 1001)
said "a full disk: no agent starts, a kill is confirmed, and its records are written once there is room"

# A real Claude Code, offline but for a scripted model on loopback: started by a member, asked about, held through an upgrade, killed.
systemd-run --quiet --unit=trial-model --setenv=PYTHONPATH=/root/model /opt/watchfloor/bin/python3 -B /root/model/serve_model.py /run/model.url
until_true test -s /run/model.url
mkdir -p /etc/systemd/system/watchfloor.service.d
printf '[Service]\nEnvironment=%s\n' "ANTHROPIC_BASE_URL=$(cat /run/model.url) ANTHROPIC_API_KEY=sk-ant-of-the-trial" \
  >/etc/systemd/system/watchfloor.service.d/trial.conf
install -d -m 755 /etc/watchfloor/conf.d
cat >/etc/watchfloor/conf.d/trial.toml <<'TOML'
[programs]
memory_free_min_mib = 0
TOML
chmod 644 /etc/watchfloor/conf.d/trial.toml
watchfloor config check
systemctl daemon-reload
systemctl restart watchfloor
runuser -u the-operator -- /usr/local/bin/claude --version | has 'Claude Code'
claude=$(runuser -u the-operator -- watchfloor run --agent claude-code -- 'TRIAL: wait' | tail -n 1)
waits() { runuser -u the-viewer -- watchfloor approval list --json | has 'tail -f /dev/null'; }
until_true waits
asked=$(watchfloor approval list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["waiting"][0]["id"])')
refused the-viewer 'the role operator' watchfloor approval approve "$asked"
runuser -u the-operator -- watchfloor approval approve "$asked" >/dev/null
working() { pgrep -u 65534 -x tail >/dev/null && pgrep -u 65534 -f claude.exe >/dev/null; }
until_true working
[ "$(ps -o ni= -C tail | sort -u | tr -d ' ')" = 0 ]
said "a real Claude Code of a member: reaches its model, asks, is approved, and works"

# The same program of an account that asked nobody: seen, adopted, confirmed dead.
systemd-run --quiet --unit=trial-seen --uid=ada --setenv=HOME=/home/ada --setenv="ANTHROPIC_BASE_URL=$(cat /run/model.url)" \
  --setenv=ANTHROPIC_API_KEY=sk-ant-of-the-trial --working-directory=/home/ada \
  /usr/local/bin/claude --dangerously-skip-permissions -p 'TRIAL: wait'
seen() { watchfloor fleet --json | python3 -c 'import json, sys; print(*[a["id"] for a in json.load(sys.stdin)["agents"] if a["control_level"] == "observed" and a["state"] == "running"])'; }
is_seen() { [ -n "$(seen)" ] && pgrep -u ada -x tail; }
until_true is_seen || { watchfloor fleet; ps -fu ada; exit 1; }
outsider=$(seen)
watchfloor adopt "$outsider" --json >adopt.json || { cat adopt.json; exit 1; }
itself=$(python3 -c 'import json; one = json.load(open("adopt.json"))["candidates"][0]; print(one["pid"], one["start_ticks"], sep=":")')
watchfloor adopt "$outsider" --pid "$itself" --reason trial >adopt.txt 2>&1 || [ $? = 8 ] || { cat adopt.txt; exit 1; }
grep -q '^adopted: ' adopt.txt
code=0; watchfloor kill "$outsider" --reason trial >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q 'All processes of 1 agent are dead' kill.txt || { cat adopt.txt kill.txt; exit 1; }
! pgrep -u ada -x tail
said "a Claude Code that nobody asked for is seen, adopted, and confirmed dead"

# An upgrade with a running agent, and a kill of another after each step of dpkg. The newer version has the same files.
version=$(dpkg-query -f '${Version}' -W watchfloor)
mkdir /root/newer
for file in /root/debs/*.deb; do
  dpkg-deb -R "$file" /root/newer/files
  sed -i "s/^Version: .*/&+1/; s/(= $version)/(= $version+1)/g" /root/newer/files/DEBIAN/control
  dpkg-deb -Zgzip -z1 -b /root/newer/files "/root/newer/${file##*/}" >/dev/null
  rm -r /root/newer/files
done
# First one that dies halfway.
extra=$(watchfloor run -- sleep 1003)
dpkg --unpack /root/newer/watchfloor_*.deb >unpack.txt 2>&1 & unpacking=$!
until [ -n "$(find /opt/watchfloor/lib -name '*.dpkg-new' -print -quit)" ]; do kill -0 $unpacking; done
kill -KILL $unpacking
wait $unpacking || true
dpkg --audit | has watchfloor || { dpkg-query -W -f '${Package} ${Status}\n' 'watchfloor*' >&2; cat unpack.txt >&2; dpkg --audit | has watchfloor; }
code=0; watchfloor kill "$extra" --reason half >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q 'All processes of 1 agent are dead' kill.txt
working
said "an upgrade that dies halfway: an agent is confirmed dead all the same, the other ones go on"
for package in watchfloor-guard watchfloor watchfloor-console; do
  for step in --unpack --configure; do
    extra=$(watchfloor run -- sleep 1003)
    case $step in --unpack) dpkg --unpack "/root/newer/${package}_"*.deb ;; *) dpkg --configure "$package" ;; esac >/dev/null
    until_true running
    # 8: a guard that took the agent over did not record its connections from the start, and says so.
    code=0; watchfloor kill "$extra" --reason "$step $package" >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
    grep -q 'All processes of 1 agent are dead' kill.txt || { echo "$step $package"; cat kill.txt; exit 1; }
    [ "$(running)" = "$claude $agent" ] || [ "$(running)" = "$agent $claude" ]
    working
  done
done
[ "$(dpkg-query -f '${Version} ${Status}' -W watchfloor)" = "$version+1 install ok installed" ] && [ -z "$(dpkg --audit)" ]
code=0; runuser -u the-responder -- watchfloor kill "$claude" --reason trial >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q 'All processes of 1 agent are dead' kill.txt || { cat kill.txt; exit 1; }
! working
! pgrep -u 65534 -f 'claude.exe|^tail'
[ "$(running)" = "$agent" ]
kept=$(ls /var/lib/watchfloor/receipts/*.sealed.json | tail -n 1)
cp "$kept" /home/the-auditor/ && chown the-auditor /home/the-auditor/*.sealed.json
runuser -u the-auditor -- watchfloor audit verify --receipt "/home/the-auditor/${kept##*/}" | has '^log intact: '
systemctl stop trial-model
rm -r /etc/systemd/system/watchfloor.service.d /etc/watchfloor/conf.d/trial.toml /root/model
systemctl daemon-reload
said "held through the upgrade, then confirmed dead; an auditor's copy of the receipt leads to the log"
said "upgraded step by step: an agent killed after each is confirmed dead, the other one goes on"

# A removal.
! remove remove >refused.txt
grep -q 'watchfloor kill --host' refused.txt
# 8: a guard that took the agent over did not record its connections from the start, and says so.
code=0; watchfloor kill "$agent" --reason trial >kill.txt || code=$?; [ $code = 0 ] || [ $code = 8 ]
grep -q 'All processes of 1 agent are dead' kill.txt
for account in ada the-viewer; do
  runuser -u "$account" -- env WATCHFLOOR_INSTANCE=own HOME="/home/$account" watchfloor install-hook claude-code --yes >/dev/null
done
runuser -u the-viewer -- env WATCHFLOOR_INSTANCE=own HOME=/home/the-viewer watchfloor hooks remove --mine >/dev/null
watchfloor panic --reason trial >/dev/null || true
remove remove >removed.txt
grep -q '^ada: claude-code: /home/ada/.claude/settings.json' removed.txt && ! grep -q '^the-viewer: ' removed.txt
grep -q 'watchfloor hooks remove --mine' removed.txt
line=$(python3 -c 'import json; print(json.load(open("/home/ada/.claude/settings.json"))["hooks"]["PreToolUse"][0]["hooks"][0]["command"])')
code=0; echo '{}' | sh -c "$line" 2>hook.txt || code=$?
[ $code = 2 ] && grep -q 'If Watchfloor is gone, take its hook out' hook.txt
[ -s /var/lib/watchfloor/audit.db ] && [ ! -e /usr/bin/watchfloor ] && [ -d /opt ]
! dpkg --purge watchfloor-guard 2>refused.txt
grep -q 'this host is killed' refused.txt && grep -q purge-anyway refused.txt && [ -s /var/lib/watchfloor/audit.db ]
# What was killed is killed when it is installed again; a person rearms it with the id of the kill.
dpkg -i /root/newer/*.deb >/dev/null
systemctl start watchfloor-guard watchfloor
watchfloor status | has '^EVERYTHING STOPPED'
kill_id=$(watchfloor receipt list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["receipts"][0]["kill_id"])')
rearmed() { (sleep 5; echo "$kill_id"; sleep 5) | script -qec 'watchfloor rearm --reason trial' /dev/null >rearm.txt && grep -q Rearmed rearm.txt; }
rearmed || { cat rearm.txt; exit 1; }
remove remove >/dev/null
said "a hook that stays is listed by account and blocks with one message; a purge while killed is refused"
! dpkg --purge watchfloor-guard 2>refused.txt
grep -q 'held as evidence' refused.txt && grep -q purge-anyway refused.txt && [ -s /var/lib/watchfloor/audit.db ]
touch /var/lib/watchfloor/purge-anyway
dpkg --purge watchfloor-guard watchfloor watchfloor-console >/dev/null 2>&1
rm -r /root/debs /root/newer
left=$(find / -xdev -name '*watchfloor*' -not -path '/home/*' -not -path '/proc/*'; find /sys/fs/cgroup -path '*system.slice*' -name 'watchfloor*'; getent passwd watchfloor-guard || true; getent group | grep '^watchfloor' || true)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
[ -s /home/ada/.local/state/watchfloor/audit.db ]
said "removed with its state kept; purged without a trace; the home folder stays"
