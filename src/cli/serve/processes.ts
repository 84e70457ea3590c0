/** The commands that run processes. Each imports its process on demand, so that it does not load libraries of the others. */
import type { Config } from '#config.ts'
import type { Clock } from '#lib/clock.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { adoptWal, readOrCreateNodeId } from '#node/identity.ts'
import type { CliContext } from '../context.ts'
import { type App, runApp } from './run-app.ts'
import type { ChildName } from './supervise.ts'

export type NodeFlags = { readonly adopt: boolean }

export function start(this: CliContext, flags: NodeFlags): Promise<void> {
  return supervise('start', ['control', 'delivery', 'ingest'], this, flags)
}

export function node(this: CliContext, flags: NodeFlags): Promise<void> {
  return supervise('node', ['delivery', 'ingest'], this, flags)
}

export function control(this: CliContext): Promise<void> {
  return serveOne('control', this, async (config, hooks) => {
    const { startControl } = await import('#control/app.ts')
    return startControl(config, {
      ...hooks,
      onBootstrap: (bootstrapped) => void process.send?.({ type: 'bootstrapped', ...bootstrapped }),
    })
  })
}

export function ingest(this: CliContext, { adopt }: NodeFlags): Promise<void> {
  return serveOne('ingest', this, async (config, hooks) => {
    if (adopt) await adoptWal(config.paths, hooks.logger)
    return (await import('#ingest/app.ts')).startIngest(config, hooks)
  })
}

export function delivery(this: CliContext, { adopt }: NodeFlags): Promise<void> {
  return serveOne('delivery', this, async (config, hooks) => {
    if (adopt) await adoptWal(config.paths, hooks.logger)
    return (await import('#delivery/app.ts')).startDelivery(config, hooks)
  })
}

type Hooks = { readonly logger: Logger; readonly clock: Clock }

async function serveOne(name: string, context: CliContext, start: (config: Config, hooks: Hooks) => Promise<App>): Promise<void> {
  const config = await context.readConfig()
  const logger = createLogger(name, config.logLevel)
  context.process.exitCode = await runApp({
    name,
    shutdownSeconds: config.shutdownSeconds,
    logger,
    start: () => start(config, { logger, clock: context.clock }),
  })
}

async function supervise(name: string, children: readonly ChildName[], context: CliContext, { adopt }: NodeFlags): Promise<void> {
  const { program, clock } = context
  const config = await context.readConfig()
  const { environment } = await import('#config.ts')
  const { superviseProcesses } = await import('./supervise.ts')
  const logger = createLogger(name, config.logLevel)
  const print = (text: string) => void context.process.stdout.write(`${text}\n`)
  context.process.exitCode = await runApp({
    name: 'supervisor',
    // Longer than the shutdown of the processes themselves, so that only a hanging one is killed.
    shutdownSeconds: config.shutdownSeconds + 5,
    logger,
    start: async () => {
      if (adopt) await adoptWal(config.paths, logger)
      // Checked here as well: the processes would be started again and again.
      await readOrCreateNodeId(config.paths)
      return await superviseProcesses({ config, environment, program, children, print, clock, logger })
    },
  })
}
