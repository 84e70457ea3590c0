/** Writes docs/configuration.md from the table in src/config/config.ts. With `--check` it only fails if the file is out of date. */
import { readFileSync, writeFileSync } from 'node:fs'
import { options } from '../src/config/config.ts'

const path = new URL('../docs/configuration.md', import.meta.url)

const rows = Object.values(options).map(
  ({ env, default: fallback, help }) =>
    `| \`${env}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${help.replaceAll('|', '\\|')} |`,
)
const text = `# Configuration

Every option is an environment variable. At startup all problems are listed at once, among them any variable that begins
with \`INLET_\` and is not in this table. Write sizes as \`10MiB\` or \`10MB\`.

| option | default | meaning |
|---|---|---|
${rows.join('\n')}

This page is generated: \`npm run config-docs\`.
`

if (!process.argv.includes('--check')) {
  writeFileSync(path, text)
} else if (readFileSync(path, 'utf8') !== text) {
  console.error('docs/configuration.md is out of date: run npm run config-docs')
  process.exitCode = 1
}
