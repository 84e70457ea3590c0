/** Writes docs/configuration.md from the table in src/config.ts. `--check` only says whether it differs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { options } from '../src/config.ts'

const path = new URL('../docs/configuration.md', import.meta.url)

const rows = Object.values(options).map(
  ({ env, default: fallback, help }) => `| \`${env}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${help} |`,
)
const text = `# Configuration

Every option is an environment variable. All problems are listed at once at the start, and a name that begins with \`INLET_\` and
stands nowhere here is one of them. Sizes are written \`10MiB\` or \`10MB\`.

| option | default | what it is |
|---|---|---|
${rows.join('\n')}

This page is generated: \`npm run config-docs\`.
`

if (!process.argv.includes('--check')) {
  writeFileSync(path, text)
} else if (readFileSync(path, 'utf8') !== text) {
  console.error('docs/configuration.md is not what src/config.ts says: run npm run config-docs')
  process.exitCode = 1
}
