#compdef watchfloor
# watchfloor: verbs and options. Load it with: source <(watchfloor completion zsh)
_watchfloor_words() {  # the words that may follow those already typed
  local path="" word words="" one
  for one in "$@"; do
    case "$one" in
      -*) ;;
      *) word="${path:+$path }$one"; _watchfloor_has "$word" && path="$word" ;;
    esac
  done
  _watchfloor_has "$path"
  printf '%s' "$_watchfloor_found"
}
_watchfloor_has() {
  local words=""
  case "$1" in
    "") words="--state-dir --no-pager --version -h --help fleet activity status cost agent agent-type sandbox doctor run say interrupt finish adopt panic panic-button kill freeze thaw isolate reconnect receipt rearm approval budget network allowlist policy mcp hook install-hook hooks audit rollback session secrets logs remote webhook config open supervisor demo screenshot completion" ;;
    "fleet") words="-h --help --columns --sort --no-headers --state-dir --json" ;;
    "activity") words="-h --help -n --rows --filter --kind -f --follow --whole --state-dir --json" ;;
    "status") words="-h --help --state-dir --json" ;;
    "cost") words="-h --help --since --until --home --state-dir --json" ;;
    "agent") words="-h --help show output dry-run plan" ;;
    "agent show") words="-h --help --state-dir --json" ;;
    "agent output") words="-h --help -n --rows -f --follow --state-dir --json" ;;
    "agent dry-run") words="-h --help --reason --leave --state-dir --json" ;;
    "agent plan") words="-h --help --approve --discard --reason --all --state-dir --json" ;;
    "agent-type") words="-h --help list" ;;
    "agent-type list") words="-h --help --state-dir --json" ;;
    "sandbox") words="-h --help show" ;;
    "sandbox show") words="-h --help --state-dir --json" ;;
    "doctor") words="-h --help --state-dir --json" ;;
    "run") words="-h --help --again --parent --session --sandbox --sensitivity --network --limit --tree-limit --unmeasured --name --type --project --scope --wait --agent --model --once --batch --dry-run --in-dry-run --dangerous-ok --state-dir --json" ;;
    "say") words="-h --help --dangerous-ok --state-dir --json" ;;
    "interrupt") words="-h --help --state-dir --json" ;;
    "finish") words="-h --help --reason --within --state-dir --json" ;;
    "adopt") words="-h --help --pid --also --reason --state-dir --json" ;;
    "panic") words="-h --help --reason --state-dir --json --wait-watch" ;;
    "panic-button") words="-h --help --state-dir --desktop-entry" ;;
    "kill") words="-h --help --tree --session --host --all --suspects --pid --reason --dry-run --wait-watch --state-dir --json" ;;
    "freeze") words="-h --help --tree --session --host --all --reason --dry-run --state-dir --json" ;;
    "thaw") words="-h --help --tree --session --host --all --reason --dry-run --state-dir --json" ;;
    "isolate") words="-h --help --tree --session --host --all --reason --dry-run --state-dir --json" ;;
    "reconnect") words="-h --help --tree --session --host --all --reason --dry-run --state-dir --json" ;;
    "receipt") words="-h --help list show verify" ;;
    "receipt list") words="-h --help --columns --sort --no-headers --state-dir --json" ;;
    "receipt show") words="-h --help --state-dir --json" ;;
    "receipt verify") words="-h --help --public-key --json" ;;
    "rearm") words="-h --help --reason --kill-id --passphrase-fd --passphrase-file --sign --keys --key --state-dir --json" ;;
    "approval") words="-h --help list show approve deny grants revoke rule" ;;
    "approval list") words="-h --help --decided --columns --sort --no-headers --state-dir --json" ;;
    "approval show") words="-h --help --state-dir --json" ;;
    "approval approve") words="-h --help --session --digest --reason --equal --state-dir --json" ;;
    "approval deny") words="-h --help --reason --equal --state-dir --json" ;;
    "approval grants") words="-h --help --state-dir --json" ;;
    "approval revoke") words="-h --help --reason --state-dir --json" ;;
    "approval rule") words="-h --help --look --reason --state-dir --json" ;;
    "budget") words="-h --help list set remove history" ;;
    "budget list") words="-h --help --agent --tree --session --project --day --columns --sort --no-headers --state-dir --json" ;;
    "budget set") words="-h --help --reason --limit --agent --tree --session --project --day --type -y --yes --state-dir --json" ;;
    "budget remove") words="-h --help --reason --agent --tree --session --project --day --type --state-dir --json" ;;
    "budget history") words="-h --help --agent --tree --session --project --day --type -n --rows --state-dir --json" ;;
    "network") words="-h --help sandboxes requests tighten history" ;;
    "network sandboxes") words="-h --help --columns --sort --no-headers --state-dir --json" ;;
    "network requests") words="-h --help --blocked --limit --columns --sort --no-headers --state-dir --json" ;;
    "network tighten") words="-h --help --mode --reason --session --dry-run --state-dir --json" ;;
    "network history") words="-h --help --session --state-dir --json" ;;
    "allowlist") words="-h --help list add remove test backtest history revert export import" ;;
    "allowlist list") words="-h --help --state-dir --json" ;;
    "allowlist add") words="-h --help --reason --owner --port --method --path --private-network --may-receive --review-by -y --yes --state-dir --json" ;;
    "allowlist remove") words="-h --help --reason --state-dir --json" ;;
    "allowlist test") words="-h --help --method --state-dir --json" ;;
    "allowlist backtest") words="-h --help --port --method --path --replaces --remove --version --days --state-dir --json" ;;
    "allowlist history") words="-h --help -n --rows --state-dir --json" ;;
    "allowlist revert") words="-h --help --reason --state-dir --json" ;;
    "allowlist export") words="-h --help --state-dir --json" ;;
    "allowlist import") words="-h --help --reason --replace --dry-run --days --state-dir --json" ;;
    "policy") words="-h --help import export sequences rules remove profile backtest draft save tools check explain lint test" ;;
    "policy import") words="-h --help --project --home --json" ;;
    "policy export") words="-h --help --json" ;;
    "policy sequences") words="-h --help --file --state-dir --json" ;;
    "policy rules") words="-h --help --state-dir --json" ;;
    "policy remove") words="-h --help --reason --state-dir --json" ;;
    "policy profile") words="-h --help --type --reason --state-dir --json" ;;
    "policy backtest") words="-h --help --allow --ask --deny --days --state-dir --json" ;;
    "policy draft") words="-h --help --state-dir --json" ;;
    "policy save") words="-h --help --reason --allow --ask --deny --state-dir --json" ;;
    "policy tools") words="-h --help sign check" ;;
    "policy tools sign") words="-h --help --tool --reason --key --state-dir --json" ;;
    "policy tools check") words="-h --help --state-dir --json" ;;
    "policy check") words="-h --help --batch --settings --profile --contained --workspace --session --sources --matrix --sensitivity --json" ;;
    "policy explain") words="-h --help --settings --profile --contained --workspace --session --sources --matrix --sensitivity --json" ;;
    "policy lint") words="-h --help --workspace --session --json" ;;
    "policy test") words="-h --help --settings --profile --contained --workspace --session --sources --matrix --sensitivity --json" ;;
    "mcp") words="-h --help list" ;;
    "mcp list") words="-h --help --state-dir --json" ;;
    "hook") words="-h --help --state-dir" ;;
    "install-hook") words="-h --help --settings --undo --check --dry-run -y --yes --state-dir --json" ;;
    "hooks") words="-h --help list remove" ;;
    "hooks list") words="-h --help --all --state-dir --json" ;;
    "hooks remove") words="-h --help --mine --state-dir --json" ;;
    "audit") words="-h --help tail verify acknowledge export" ;;
    "audit tail") words="-h --help -n --rows --filter -f --follow --state-dir --json" ;;
    "audit verify") words="-h --help --receipt --anchor --state-dir --json" ;;
    "audit acknowledge") words="-h --help --reason --state-dir --json" ;;
    "audit export") words="-h --help --format --state-dir --json" ;;
    "rollback") words="-h --help list show restore" ;;
    "rollback list") words="-h --help --columns --sort --no-headers --state-dir --json" ;;
    "rollback show") words="-h --help --state-dir --json" ;;
    "rollback restore") words="-h --help --reason --expect-now --state-dir --json" ;;
    "session") words="-h --help list show hold delete classify" ;;
    "session list") words="-h --help --state-dir --json" ;;
    "session show") words="-h --help --state-dir --json" ;;
    "session hold") words="-h --help --reason --remove --state-dir --json" ;;
    "session delete") words="-h --help --reason --state-dir --json" ;;
    "session classify") words="-h --help --dataset --sensitivity --reason --session --source --dry-run --state-dir --json" ;;
    "secrets") words="-h --help rotation revoke keys passphrase" ;;
    "secrets rotation") words="-h --help show run put api-key" ;;
    "secrets rotation show") words="-h --help --state-dir --json" ;;
    "secrets rotation run") words="-h --help --reason --state-dir --json" ;;
    "secrets rotation put") words="-h --help --state-dir --json" ;;
    "secrets rotation api-key") words="-h --help --state-dir --json" ;;
    "secrets revoke") words="-h --help --state-dir --json" ;;
    "secrets keys") words="-h --help init show rotate revoke" ;;
    "secrets keys init") words="-h --help --fleet --quorum --state-dir --json" ;;
    "secrets keys show") words="-h --help --state-dir --json" ;;
    "secrets keys rotate") words="-h --help --state-dir --json" ;;
    "secrets keys revoke") words="-h --help --reason --key --state-dir --json" ;;
    "secrets passphrase") words="-h --help set reset status" ;;
    "secrets passphrase set") words="-h --help --passphrase-fd --passphrase-file --old-fd --old-file --state-dir --json" ;;
    "secrets passphrase reset") words="-h --help --state-dir --json" ;;
    "secrets passphrase status") words="-h --help --state-dir --json" ;;
    "logs") words="-h --help -n --rows --filter --state-dir --json" ;;
    "remote") words="-h --help watch release" ;;
    "remote watch") words="-h --help --once --standby --state-dir --json" ;;
    "remote release") words="-h --help --reason --review --order --key -y --yes --state-dir --json" ;;
    "webhook") words="-h --help set test status remove" ;;
    "webhook set") words="-h --help --secret-fd --secret-file --state-dir --json" ;;
    "webhook test") words="-h --help --state-dir --json" ;;
    "webhook status") words="-h --help --state-dir --json" ;;
    "webhook remove") words="-h --help --state-dir --json" ;;
    "config") words="-h --help show check set reset" ;;
    "config show") words="-h --help --origin --columns --sort --no-headers --state-dir --json" ;;
    "config check") words="-h --help --state-dir --json" ;;
    "config set") words="-h --help --reason --state-dir --json" ;;
    "config reset") words="-h --help --reason --state-dir --json" ;;
    "open") words="-h --help --state-dir" ;;
    "supervisor") words="-h --help --state-dir" ;;
    "demo") words="-h --help --headless --seconds --agents --theme --state-dir" ;;
    "screenshot") words="-h --help --theme --state-dir" ;;
    "completion") words="-h --help" ;;
    *) return 1 ;;
  esac
  _watchfloor_found="$words"
}

_watchfloor() {
  local known
  known="$(_watchfloor_words "${words[@]:1:$((CURRENT - 2))}")"
  compadd -- ${=known}
  _files
}
compdef _watchfloor watchfloor
