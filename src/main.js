/**
 * Entry point of `inlet`, linked to as `main.ts`. Node 20 and older cannot read TypeScript: this is JavaScript that they can, so that they
 * name the version of Node that is needed. The package has it unchanged: `#` finds TypeScript in the repository, and JavaScript there.
 */
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// Only the user of Inlet can read what Inlet and its children write, SQLite and DuckDB included.
process.umask(0o077)

const needed = 24
const { node } = process.versions

if (Number.parseInt(node, 10) < needed) {
  process.exitCode = 1
  process.stderr.write(
    `Inlet needs Node ${needed} or newer, and this is Node ${node}. ` +
      'In the repository `npm ci` installs the right one, and `npm start` and `npm run inlet -- <command>` use it. ' +
      'The package brings it along, unless it was installed with --omit=optional or for a platform without one: then install Node from https://nodejs.org.\n',
  )
} else {
  // Otherwise this signal opens the inspector, and with it the process and its secrets, to every user of the machine.
  process.on('SIGUSR1', () => undefined)
  // Without this, Node loads a compiler for TypeScript into each process: 17 MB and half of the time of a start.
  module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)))
  const main = await import('#cli/main.ts').catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !/^Cannot find package/.test(error.message)) throw error
    process.stderr.write(
      `Inlet is not installed completely: ${error.message}. Install it again: in the repository with \`npm ci\`.\n`,
    )
  })
  process.exitCode = main === undefined ? 1 : await main.runInlet(String(process.argv[1]))
}
