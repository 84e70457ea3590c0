/**
 * Entry point of `inlet`, linked to as `main.ts`. Node 20 and older cannot read TypeScript: this is JavaScript that they can, so that they
 * name the version of Node that is needed.
 */
import { readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// Only the user of Inlet can read what Inlet and its children write, SQLite and DuckDB included.
process.umask(0o077)

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const needed = Number.parseInt(engines.node.replace('>=', ''), 10)
const { node } = process.versions

if (Number.parseInt(node, 10) < needed) {
  process.exitCode = 1
  process.stderr.write(
    `Inlet needs Node ${needed} or newer, and this is Node ${node}. ` +
      '`npm ci` installs the right one, and `npm start` and `npm run inlet -- <command>` use it.\n',
  )
} else {
  // Otherwise this signal opens the inspector, and with it the process and its secrets, to every user of the machine.
  process.on('SIGUSR1', () => undefined)
  // Without this, Node loads a compiler for TypeScript into each process: 17 MB and half of the time of a start.
  module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)))
  const { runInlet } = await import('./cli/main.ts')
  process.exitCode = await runInlet(fileURLToPath(new URL('main.ts', import.meta.url)))
}
