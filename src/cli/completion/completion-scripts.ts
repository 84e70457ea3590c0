/** `inlet completion`: the scripts that make a shell ask this program what may follow. */
import type { CliContext } from '../terminal/context.ts'

export type Shell = keyof typeof scripts

const scripts = {
  bash: `# Completion of inlet for bash: source <(inlet completion bash)
_inlet() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _inlet inlet
`,
  zsh: `#compdef inlet
# Completion of inlet for zsh: source <(inlet completion zsh)
_inlet() {
  local completion brief
  local -a proposals
  while IFS=$'\\t' read -r completion brief; do
    proposals+=("\${completion//:/\\\\:}:$brief")
  done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#proposals )); then
    _describe inlet proposals
  else
    _files
  fi
}
if [[ $funcstack[1] == _inlet ]]; then
  _inlet "$@"
else
  compdef _inlet inlet
fi
`,
  fish: `# Completion of inlet for fish: inlet completion fish | source
function __inlet_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l proposals (command $words[1] __complete $words[2..-1] 2>/dev/null)
    if set -q proposals[1]
        printf '%s\\n' $proposals
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c inlet -f -a '(__inlet_complete)'
`,
} as const

export function printCompletionScript(this: CliContext, _flags: object, shell: Shell): void {
  this.process.stdout.write(scripts[shell])
}
