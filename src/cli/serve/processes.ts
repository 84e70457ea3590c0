/** The commands that run processes. Each imports its process on demand, so that it does not load libraries of the others. */
import type { Config } from '#config/config.ts'
import type { SearchEndpoint } from '#control/upkeep/losses-in-buckets.ts'
import type { RebuildRegion } from '#control/upkeep/lost-commits.ts'
import type { Clock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { paintFor } from '#lib/text-lines.ts'
import { isSupervised } from '#node/child-messages.ts'
import { adoptWal, readOrCreateNodeId } from '#node/identity.ts'
import { assertRestored } from '../backup/restoring.ts'
import type { CliContext } from '../terminal/context.ts'
import type { AdoptionOptions } from './adopt.ts'
import type { ChildName } from './child-environment.ts'
import { warnAboutPermissions } from './data-permissions.ts'
import { formatFirstKey, formatFirstLink, keepFirstKey, keepFirstLink } from './first-key.ts'
import { checkObjectStore } from './object-store.ts'
import { logFormatOf, openLog } from './open-log.ts'
import { type App, type RunAppOptions, runApp } from './run-app.ts'
import type { TakeOvers } from './take-overs.ts'

export type AdoptFlags = { readonly adopt: boolean }

/** Options of `inlet node` that stand for environment variables. */
const variables = {
  region: 'INLET_REGION',
  control: 'INLET_CONTROL_URL',
  joinToken: 'INLET_JOIN_TOKEN',
  dataDir: 'INLET_DATA_DIR',
} as const

/** `adopt`: the directory of a node whose machine is gone; empty for that of this node. `adoptCopy`: the id of one with a copy of its log. */
export type NodeFlags = { readonly adopt?: string; readonly adoptCopy?: string } & {
  readonly [Flag in keyof typeof variables]?: string
}

export function start(this: CliContext, flags: AdoptFlags): Promise<void> {
  return supervise('start', ['control', 'delivery', 'ingest'], this, flags)
}

export function node(this: CliContext, { adopt, adoptCopy, ...given }: NodeFlags): Promise<void> {
  const settings = Object.fromEntries(
    Object.entries(variables).flatMap(([flag, name]) => {
      const value = given[flag as keyof typeof variables]
      return value === undefined ? [] : [[name, value]]
    }),
  )
  // Every user of the machine can read the arguments of a process, as long as it runs.
  if (given.joinToken !== undefined) process.title = 'inlet node'
  if (adoptCopy !== undefined) return deliverAdopted(this, { nodeId: adoptCopy }, settings)
  if (adopt) return deliverAdopted(this, { directory: adopt }, settings)
  return supervise('node', ['delivery', 'ingest'], this, { adopt: adopt !== undefined, settings })
}

export function control(this: CliContext): Promise<void> {
  const { stdout } = this.process
  return serveOne('control', this, async (config, hooks) => {
    const { startControl } = await import('#control/app.ts')
    const { environment } = await import('#config/config.ts')
    const onBootstrap = async (bootstrapped: { readonly api_key: string | null }) => {
      if (isSupervised(environment)) {
        process.send?.({ type: 'bootstrapped', ...bootstrapped })
        return
      }
      const where = { path: config.paths.firstApiKey, isTerminal: stdout.isTTY === true, logger: hooks.logger }
      const firstKey = await keepFirstKey(bootstrapped.api_key, where)
      if (firstKey !== undefined) stdout.write(`${formatFirstKey(firstKey, logFormatOf(config))}\n`)
    }
    const onFirstLink = async (url: string) => {
      if (isSupervised(environment)) {
        process.send?.({ type: 'first_link', url })
        return
      }
      const where = { path: config.paths.signInLink, isTerminal: stdout.isTTY === true, logger: hooks.logger }
      const firstLink = await keepFirstLink(url, where)
      if (firstLink !== undefined) stdout.write(`${formatFirstLink(firstLink, logFormatOf(config))}\n`)
    }
    // A child of the supervisor has its output.
    const isAtTerminal = stdout.isTTY === true
    // Loaded once it is needed: it reads markers as delivery writes them.
    const rebuildRegion: RebuildRegion = async (options) => (await import('../commits/rebuild-region.ts')).rebuildRegion(options)
    const searchEndpoint: SearchEndpoint = async (options) =>
      (await import('../commits/search-endpoint.ts')).searchEndpoint(options)
    const more = { rebuildRegion, searchEndpoint, isAtTerminal, usesDatabaseClock: true }
    return () => startControl(config, { ...hooks, ...more, onBootstrap, onFirstLink })
  })
}

export function ingest(this: CliContext, { adopt }: AdoptFlags): Promise<void> {
  return serveOne('ingest', this, async (config, hooks) => {
    const { startIngest } = await import('#ingest/app.ts')
    const { environment } = await import('#config/config.ts')
    const supervisor = isSupervised(environment) ? { supervisorPid: process.ppid } : {}
    return async () => {
      if (adopt) await adoptWal(config.paths, system, hooks.logger)
      return await startIngest(config, { ...hooks, ...supervisor })
    }
  })
}

export function delivery(this: CliContext, { adopt }: AdoptFlags): Promise<void> {
  return serveOne('delivery', this, async (config, hooks) => {
    const { startDelivery } = await import('#delivery/app.ts')
    return async () => {
      if (adopt) await adoptWal(config.paths, system, hooks.logger)
      const app = await startDelivery(config, hooks)
      if (config.copyUrl === null) return app
      const takeOvers = await openTakeOvers(config, hooks)
      await takeOvers.start()
      return {
        ...app,
        async stop(signal) {
          await takeOvers.stop()
          await app.stop(signal)
        },
      }
    }
  })
}

/** Beside the delivery of this node, because it needs the buckets. */
async function openTakeOvers(config: Config, hooks: Hooks): Promise<TakeOvers> {
  const { TakeOvers } = await import('./take-overs.ts')
  return new TakeOvers({
    ...{ config, ...hooks },
    async deliver(nodeId, stopping) {
      const { deliverCopies } = await import('./adopt-copy.ts')
      const own = { config, nodeId, isByItself: true, isRegionGiven: true }
      return await deliverCopies({ ...own, ...(await adoptionApps()), ...hooks, stopping })
    },
  })
}

async function adoptionApps(): Promise<Pick<AdoptionOptions, 'startIngest' | 'startDelivery'>> {
  const { startAdoptedIngest: startIngest } = await import('#ingest/adopted/app.ts')
  const { startDelivery } = await import('#delivery/app.ts')
  return { startIngest, startDelivery }
}

type Hooks = { readonly logger: Logger; readonly clock: Clock }

type Load = (config: Config, hooks: Hooks) => Promise<() => Promise<App>>

async function serveOne(name: string, context: CliContext, load: Load): Promise<void> {
  const config = await context.readConfig()
  const { environment } = await import('#config/config.ts')
  const logger = openLog(name, config, isSupervised(environment))
  context.process.exitCode = await runApp({
    name,
    shutdownSeconds: config.shutdownSeconds,
    logger,
    clock: context.clock,
    ...launchedBy(environment),
    load: async () => {
      if (!isSupervised(environment)) {
        assertRestored(config.paths)
        await warnAboutPermissions(config, logger)
      }
      return await load(config, { logger, clock: context.clock })
    },
  })
}

/** A directory that has the log, or a node with a copy of it. */
type Adopted = { readonly directory: string } | { readonly nodeId: string }

async function deliverAdopted(context: CliContext, adopted: Adopted, settings: Readonly<Record<string, string>>): Promise<void> {
  const { clock } = context
  const config = await context.readConfig(settings)
  const environment = { ...(await import('#config/config.ts')).environment, ...settings }
  const logger = openLog('adopt', config, true)
  context.process.exitCode = await runApp({
    name: 'adoption',
    shutdownSeconds: config.shutdownSeconds,
    logger,
    clock,
    ...launchedBy(environment),
    load: async () => {
      const { startAdoption } = await import('./adopt.ts')
      const { deliverCopies } = await import('./adopt-copy.ts')
      const apps = await adoptionApps()
      return async (stopping) => {
        checkObjectStore(config, ['delivery', 'ingest'], logger, environment['INLET_OBJECT_STORE'])
        const isRegionGiven = Boolean(environment['INLET_REGION'])
        const more = { config, isRegionGiven, ...apps, logger, clock }
        if ('nodeId' in adopted) return await deliverCopies({ ...more, ...adopted, stopping })
        return await startAdoption({ ...more, ...adopted }, stopping)
      }
    },
  })
}

type SuperviseFlags = AdoptFlags & { readonly settings?: Readonly<Record<string, string>> }

async function supervise(
  name: string,
  children: readonly ChildName[],
  context: CliContext,
  { adopt, settings = {} }: SuperviseFlags,
): Promise<void> {
  const { program, clock } = context
  const config = await context.readConfig(settings)
  const environment = { ...(await import('#config/config.ts')).environment, ...settings }
  const { checkStart } = await import('./check-start.ts')
  const { superviseProcesses } = await import('./supervise.ts')
  const logger = openLog(name, config, true)
  const { stdout } = context.process
  const print = (text: string) => void stdout.write(`${text}\n`)
  const paint = paintFor(stdout)
  context.process.exitCode = await runApp({
    name: 'supervisor',
    // Longer than the processes themselves take, so that only a hanging one is killed.
    shutdownSeconds: config.leaveSecondsMax + config.shutdownSeconds + 10,
    logger,
    clock,
    ...launchedBy(environment),
    load: async () => async () => {
      assertRestored(config.paths)
      await checkStart(config, children)
      checkObjectStore(config, children, logger, environment['INLET_OBJECT_STORE'])
      await warnAboutPermissions(config, logger)
      if (adopt) await adoptWal(config.paths, system, logger)
      await readOrCreateNodeId(config.paths, system)
      return await superviseProcesses({
        config,
        environment,
        program,
        children,
        print,
        isTerminal: stdout.isTTY === true,
        paint,
        clock,
        logger,
      })
    },
  })
}

/** Returns who started this process: a supervisor, or npm if it runs one of our scripts. */
function launchedBy(environment: Readonly<Record<string, string | undefined>>): Pick<RunAppOptions, 'isSupervised' | 'npmPid'> {
  if (isSupervised(environment)) return { isSupervised: true }
  return environment['npm_lifecycle_script']?.includes('src/main.ts') === true ? { npmPid: () => process.ppid } : {}
}
