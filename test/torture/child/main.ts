/**
 * One process under test: the production code of `control`, `ingest` or `delivery` on a disk, a clock and buckets that the harness steers:
 * `node main.ts <name> <settings as JSON>`, configured by the environment as usual.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runApp } from '#cli/serve/run-app.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { DirectoryStores } from '#objects/directory.ts'
import { type Config, readConfig } from '../../../src/config/config.ts'
import { coveredBy } from '../power/covered.ts'
import { recordingFiles } from '../power/recording-files.ts'
import { failingFiles } from './failing-files.ts'
import { failingStores } from './failing-stores.ts'
import { type Settings, Steered, type Steering } from './steering.ts'

const [name = '', json = ''] = process.argv.slice(2)
const settings: Settings = JSON.parse(json)
const steered = new Steered(settings.steering)
/** For conversion processes. */
const steeringPath = `${settings.journal}.steering`
const steer = (steering: Steering): void => {
  steered.now = steering
  if (name === 'delivery') writeFileSync(steeringPath, JSON.stringify(steering))
}
steer(settings.steering)
process.on('message', (steering) => steer(steering as Steering))

const config = readConfig()
const clock: Clock = { ...systemClock, now: () => Date.now() + steered.now.clockOffsetMs }
const logger = createLogger(name, config.logLevel)

process.exitCode = await runApp({
  name,
  shutdownSeconds: config.shutdownSeconds,
  logger,
  clock,
  load: async () => () => start(config),
})

async function start(from: Config) {
  const hooks = { logger, clock }
  switch (name) {
    case 'control': {
      const { startControl } = await import('#control/app.ts')
      return await startControl(from, { ...hooks, onBootstrap: () => undefined })
    }
    case 'ingest': {
      const { startIngest } = await import('#ingest/app.ts')
      return await startIngest(from, { ...hooks, files: files(from) })
    }
    case 'delivery': {
      const { startDelivery } = await import('#delivery/app.ts')
      const stores = failingStores(new DirectoryStores({ ...system, root: from.paths.buckets }), steered)
      const program = join(import.meta.dirname, 'convert-worker.ts')
      const { createConversionPool } = await import('#delivery/convert/conversion-pool.ts')
      const conversionPool = createConversionPool({
        clock: systemClock,
        commandLine: ([node = '']) => [node, program, steeringPath],
      })
      const app = await startDelivery(from, { ...hooks, files: files(from), stores, conversionPool })
      return {
        async stop(signal: AbortSignal) {
          await app.stop(signal)
          await conversionPool.stop()
        },
      }
    }
    default:
      throw new Error(`no such process: ${name}`)
  }
}

function files({ paths }: Config): Files {
  const { journal, graveyard } = settings
  return failingFiles(recordingFiles(systemFiles, { journal, graveyard, covers: coveredBy(paths.data) }), steered)
}
