import { buildChoiceParser, buildCommand } from '@stricli/core'
import type { Shell } from '../completion/completion-scripts.ts'
import type { CliContext } from '../terminal/context.ts'

const shells: readonly Shell[] = ['bash', 'zsh', 'fish']

export const completionCommand = buildCommand<object, [shell: Shell], CliContext>({
  loader: async () => (await import('../completion/completion-scripts.ts')).printCompletionScript,
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: buildChoiceParser(shells),
          brief: shells.join(', '),
          placeholder: 'SHELL',
          proposeCompletions: (partial) => shells.filter((shell) => shell.startsWith(partial)),
        },
      ],
    },
  },
  docs: {
    brief: 'print a script that completes commands and options in a shell',
    fullDescription: `Prints a script that completes commands and options in a shell. Load it when the shell starts:

  bash: echo 'source <(inlet completion bash)' >> ~/.bashrc
  zsh:  echo 'source <(inlet completion zsh)' >> ~/.zshrc, behind compinit
  fish: inlet completion fish > ~/.config/fish/completions/inlet.fish`,
  },
})
