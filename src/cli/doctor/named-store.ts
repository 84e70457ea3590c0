/**
 * `inlet doctor --store URL`: tries a copy store from several processes, and says which features of Inlet are safe there.
 *
 * Owns: the place in the store, the processes, and the table. Does not own: what is tried (copies/store-check.ts).
 * Law: it touches no other object, and leaves nothing behind, also if it is interrupted.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type CopyStoreConfig, openCopyStore } from '#copies/open-store.ts'
import { checkCopyStore, type StoreFinding } from '#copies/store-check.ts'
import { countNoun } from '#lib/count-noun.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import type { CliContext } from '../terminal/context.ts'
import { Progress } from '../terminal/progress.ts'
import { type CopiesConfig, folderOf, settingsAdvice, toFinding, unknownAdvice } from './copy-store.ts'
import { type Finding, fail, ok, warn } from './finding.ts'
import { startOtherProcesses } from './other-processes.ts'

const processes = 4
/** In this process, beside the others. */
const ownRacers = 4
const rounds = 20
/** So that a line of progress has fewer than 80 characters. */
const noteMax = 32
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A directory is tried whatever store is in use. */
const withoutS3 = {
  INLET_COPY_S3_ENDPOINT: '',
  INLET_COPY_REGION: '',
  INLET_COPY_ACCESS_KEY_ID: '',
  INLET_COPY_SECRET_ACCESS_KEY: '',
}
const directoryAdvice = 'name a directory in which this user may write'

export async function checkNamedStore(context: CliContext, url: string): Promise<readonly Finding[]> {
  const isDirectory = /^file:/i.test(url)
  const settings = { INLET_COPY_URL: url, ...(isDirectory && withoutS3) }
  const { copyUrl, copyS3Endpoint, copyRegion, copyPathStyle, copyAccessKeyId, copySecretAccessKey } =
    await context.readConfig(settings)
  const credentials = { copyAccessKeyId, copySecretAccessKey }
  try {
    return await checkAt(context, url, { copyUrl, copyS3Endpoint, copyRegion, copyPathStyle, ...credentials })
  } catch (error) {
    if (error instanceof UserError) throw error
    return [fail('store', errorMessage(error), isDirectory ? directoryAdvice : settingsAdvice)]
  }
}

async function checkAt(context: CliContext, url: string, { copyUrl, ...config }: CopiesConfig): Promise<readonly Finding[]> {
  if (copyUrl === null) throw new UserError('--store: must be s3://bucket/prefix or file:///directory, not empty')
  if (copyUrl.kind === 's3') return await run(context, url, { ...config, copyUrl })
  const { path } = copyUrl
  const own = await mkdtemp(join(path, 'inlet-check-')).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') throw new Error(`there is no directory ${path}: mount its disk, or make it`)
    throw error
  })
  try {
    return await run(context, url, { ...config, copyUrl: { ...copyUrl, path: own } })
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

async function run(context: CliContext, url: string, config: CopyStoreConfig): Promise<readonly Finding[]> {
  const { stderr } = context.process
  const stopping = new AbortController()
  const stop = (signal: NodeJS.Signals) => {
    for (const name of signals) process.off(name, stop)
    // The terminal is gone after SIGHUP.
    if (signal !== 'SIGHUP') stderr.write('removing what was written; a second signal leaves it there\n')
    stopping.abort(new UserError('interrupted'))
  }
  const { store, prefix, close } = await openCopyStore(config, system)
  const others = startOtherProcesses(config, await context.readEnvironment(), system.clock)
  // Other timers do not keep the process alive.
  const alive = setInterval(() => undefined, 1_000)
  for (const name of signals) process.on(name, stop)
  let progress: Progress | undefined
  try {
    const folder = folderOf(prefix)
    await others.warm(processes, `${folder}check`)
    const racers = [...Array(ownRacers).fill(store), ...Array(processes).fill(others.store)]
    const onStep = (done: number, total: number, step: string) => {
      if (stderr.isTTY !== true) return
      progress ??= new Progress({ output: stderr, label: 'trying', total })
      progress.show(done, step.slice(0, noteMax))
    }
    const thorough = { other: others.store, rounds, stopping: stopping.signal, onStep }
    const { signal } = new AbortController()
    const findings = await checkCopyStore({ store, folder, signal, racers, thorough, ...system })
    const tried = ok('store', `${url} was tried from ${processes + 1} processes`)
    return [tried, ...findings.map(describeStep), ...features.flatMap((feature) => judge(feature, findings))]
  } finally {
    for (const name of signals) process.off(name, stop)
    clearInterval(alive)
    await others.stop()
    close()
  }
}

function describeStep(finding: StoreFinding): Finding {
  const { status, message, next_step } = toFinding('store', finding)
  const seen = finding.rounds > 1 ? ` (${countNoun(finding.rounds, 'round')})` : ''
  return { check: 'store', status, message: status === 'ok' ? `${message}${seen}` : message, next_step }
}

type Feature = { readonly name: string; readonly needs: readonly StoreFinding['kind'][]; readonly otherwise: string }

const byHand = 'leave INLET_TAKEOVER_AFTER empty, and take a node over once its machine is off: inlet node --adopt-copy NODE'
const features: readonly Feature[] = [
  { name: 'two copies', needs: ['needed'], otherwise: 'use another store for copies: an acknowledgement would not hold' },
  { name: 'takeover by hand', needs: ['needed'], otherwise: 'use another store for copies' },
  { name: 'takeover by itself', needs: ['needed', 'fence'], otherwise: byHand },
  {
    name: 'markers put once',
    needs: ['fence'],
    otherwise: 'in a bucket of this store, never let two machines deliver one log: docs/fencing.md',
  },
  {
    name: 'uploads in parts',
    needs: ['parts'],
    otherwise: 'give buckets of this store a lifecycle rule that removes unfinished uploads: docs/destinations.md',
  },
]

/** A directory has no uploads in parts. */
function judge({ name, needs, otherwise }: Feature, findings: readonly StoreFinding[]): readonly Finding[] {
  const concerned = findings.filter(({ kind }) => needs.includes(kind))
  if (concerned.length === 0) return []
  const check = `safe: ${name}`
  const wrong = concerned.find(({ problem, isUnknown }) => problem !== null && !isUnknown)
  if (wrong !== undefined) return [fail(check, `no: ${wrong.step}: ${wrong.problem}`, otherwise)]
  const untried = concerned.find(({ isUnknown }) => isUnknown)
  return [untried === undefined ? ok(check, 'yes') : warn(check, `unknown: ${untried.step}`, unknownAdvice)]
}
