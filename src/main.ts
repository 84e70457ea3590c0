/** The command line. Composes; nothing imports it. */
import { fileURLToPath } from 'node:url'
import { type App, serve } from '#cli/serve.ts'
import { type ChildName, startProcesses } from '#cli/start.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { nodeIdentity } from '#node/identity.ts'
import { type Config, ConfigurationError, environment, readConfig } from './config.ts'

const usage = `Usage: inlet <command>

Serve
  start                 everything on one machine: control, ingest, delivery
  control               the management API alone
  node                  ingest and delivery, for a control elsewhere (INLET_CONTROL_URL, INLET_NODE_TOKEN)

Look around
  demo                  start a server of its own, send events, show what arrives
  segment cat FILE      print a segment (also .wal.zst) as NDJSON
  segment check FILE    verify a segment
  parked list|retry|skip
                        segments that could not be converted
  commits rebuild       commits that the database lost, from the markers in the buckets
  keys create|list|revoke

Every option is an environment variable: docs/configuration.md.
`

type Command = (args: readonly string[], config: () => Config) => Promise<number>

const commands: Readonly<Record<string, Command>> = {
  start: (_, config) => supervise('start', ['control', 'delivery', 'ingest'], config()),
  node: (_, config) => supervise('node', ['delivery', 'ingest'], config()),
  control: (_, config) =>
    serveOne('control', config(), async (config, context) => {
      const { startControl } = await import('#control/app.ts')
      return startControl(config, { ...context, onBootstrap: (made) => void process.send?.({ type: 'bootstrapped', ...made }) })
    }),
  ingest: (_, config) =>
    serveOne('ingest', config(), async (config, context) => (await import('#ingest/app.ts')).startIngest(config, context)),
  delivery: (_, config) =>
    serveOne('delivery', config(), async (config, context) => (await import('#delivery/app.ts')).startDelivery(config, context)),
  // Loaded when asked for: a process loads only what it runs.
  demo: async (args) =>
    (await import('#cli/demo/command.ts')).demoCommand(args, { program: fileURLToPath(import.meta.url), stdout: process.stdout }),
  segment: async (args) => (await import('#cli/segment.ts')).segmentCommand(args, process.stdout),
  parked: async (args, config) => {
    const { paths } = config()
    const { parkedCommand } = await import('#cli/parked.ts')
    const { SegmentDirectory } = await import('#wal/segment-directory.ts')
    return parkedCommand(args, {
      nodeId: await nodeIdentity(paths.nodeId),
      segments: new SegmentDirectory({ directory: paths.wal, files: systemFiles }),
      suspectsDirectory: paths.suspects,
      files: systemFiles,
      print: (text) => void process.stdout.write(`${text}\n`),
    })
  },
  commits: async (args, readConfig) => {
    const config = readConfig()
    const { commitsCommand } = await import('#cli/commits/command.ts')
    const stores = async () => {
      const { openObjectStores } = await import('#objects/open.ts')
      return (await openObjectStores(config, { clock: systemClock })).stores
    }
    return commitsCommand(args, { config, stores, stdout: process.stdout, now: Date.now })
  },
  keys: async (args, config) => (await import('#cli/keys.ts')).keysCommand(args, config(), process.stdout),
}

process.exitCode = await main(process.argv.slice(2))

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const command = commands[name]
  if (command === undefined) {
    process.stdout.write(usage)
    return ['', 'help', '--help', '-h'].includes(name) ? 0 : 2
  }
  try {
    return await command(args, readConfig)
  } catch (error) {
    // What a person can act on is said in words; a stack is for those who can mend the program.
    process.stderr.write(`inlet ${name}: ${error instanceof ConfigurationError ? error.message : describe(error)}\n`)
    return 1
  }
}

function serveOne(name: string, config: Config, start: (config: Config, context: Context) => Promise<App>): Promise<number> {
  const logger = createLogger(name, config.logLevel)
  return serve({
    name,
    shutdownSeconds: config.shutdownSeconds,
    logger,
    start: () => start(config, { logger, clock: systemClock }),
  })
}

async function supervise(name: string, children: readonly ChildName[], config: Config): Promise<number> {
  const logger = createLogger(name, config.logLevel)
  const program = fileURLToPath(import.meta.url)
  const print = (text: string) => void process.stdout.write(`${text}\n`)
  return serve({
    name,
    // A little longer than the processes give themselves: only what hangs is killed.
    shutdownSeconds: config.shutdownSeconds + 5,
    logger,
    start: () => startProcesses({ config, environment, program, children, print, clock: systemClock, logger }),
  })
}

type Context = { readonly logger: Logger; readonly clock: Clock }

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
