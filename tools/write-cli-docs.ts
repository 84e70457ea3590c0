/** Writes docs/cli.md from the declarations of the commands. With `--check` it only fails if the file is out of date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Application, type CommandContext, generateHelpTextForAllCommands } from '@stricli/core'
import { createApplication } from '../src/cli/command-line.ts'

const path = new URL('../docs/cli.md', import.meta.url)

/** Lines in the help of every command. */
const common = /^ +inlet .* --help\n|^ +-h +--help .*\n|^ +-- .*\n?/gm

/** Help runs no command, and so needs none of their context. */
const application = createApplication([]) as unknown as Application<CommandContext>

const commands = generateHelpTextForAllCommands(application).map(
  ([command, help]) =>
    `## ${command}\n\n\`\`\`text\n${help
      .replaceAll(common, '')
      .replace(/\nOptions\n(?=\n|$)/, '')
      .trim()}\n\`\`\`\n`,
)
const text = `# Commands

What \`inlet COMMAND --help\` prints, for every command. [From the command line](client.md#from-the-command-line) shows the commands that call an Inlet at work, and [Operations](operations.md) those
of the operator.

- \`inlet --profile NAME COMMAND\` uses a profile of \`inlet login\` by its name. \`INLET_API_KEY\`, with \`INLET_URL\`, goes before all profiles.
- Exit codes: 0 success, 1 failure, 2 wrong usage, 3 changes with \`inlet plan --exit-code\`. Messages about failures are on standard error.
- \`--json\` prints JSON on standard output, with the names of fields of the API: a list is one array, anything else one object, as is \`inlet segments list\` with its totals. \`inlet tail\` and \`inlet query\` print a line of JSON for each record or row.

${commands.join('\n')}
This page is generated: \`npm run cli-docs\`.
`

if (!process.argv.includes('--check')) {
  writeFileSync(path, text)
} else if (readFileSync(path, 'utf8') !== text) {
  console.error('docs/cli.md is out of date: run npm run cli-docs')
  process.exitCode = 1
}
