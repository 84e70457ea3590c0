import { buildChoiceParser } from '@stricli/core'
import type { Shell } from '../completion/completion-scripts.ts'
import { command } from './command.ts'

const shells: readonly Shell[] = ['bash', 'zsh', 'fish']

export const completionCommand = command(
  'print a script that completes commands and options in a shell',
  async () => (await import('../completion/completion-scripts.ts')).printCompletionScript,
  {
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
  `Prints a script that completes commands and options in a shell. Load it when the shell starts:

  bash: echo 'source <(inlet completion bash)' >> ~/.bashrc
  zsh:  echo 'source <(inlet completion zsh)' >> ~/.zshrc, behind compinit
  fish: inlet completion fish > ~/.config/fish/completions/inlet.fish`,
)
