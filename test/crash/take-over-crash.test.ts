/**
 * A machine that takes over another one by its copies dies at a named moment, or at any, while the lost machine runs on. Then it goes on, or a
 * third one takes over.
 * Law: what the lost machine acknowledged, with the fence in mind, is in the restored log, and nothing that it did not send.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Config, readConfig } from '#config/config.ts'
import { withDataDirectory } from '#config/data-paths.ts'
import { Copier } from '#copies/copier.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { putWriterState } from '#copies/writer-state.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { newRegion, useControl } from '../support/control.ts'
import { readMarkers } from '../support/read-markers.ts'
import { registerMachine } from '../support/register-machine.ts'
import { TestNode } from '../support/test-node.ts'
import { isThorough, runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'
import { Random } from '../torture/random.ts'

const control = useControl()
const child = resolve(import.meta.dirname, 'take-over-child.ts')
const logger = createLogger('test', 'silent')
const { signal } = new AbortController()
const incarnation = 'abcdefghij'
/** Records of each segment. */
const segmentRecords = 200
/** Enough that a takeover reads for a while. */
const recordsBefore = 1_500

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-take-over-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** A machine of the region, with a data directory of its own. */
class Machine {
  readonly environment: Readonly<Record<string, string>>
  readonly config: Config
  readonly #lostId: string

  constructor(name: string, region: string, lostId: string) {
    this.environment = {
      ...{ INLET_DATA_DIR: join(directory, lostId, name), INLET_CONTROL_URL: control().app.nodeApiUrl, INLET_REGION: region },
      INLET_COPY_URL: pathToFileURL(join(directory, lostId, 'copies')).href,
    }
    this.config = readConfig(this.environment)
    this.#lostId = lostId
  }

  get paths(): Config['paths'] {
    return withDataDirectory(this.config, join(this.config.paths.data, 'taken-over', this.#lostId)).paths
  }

  takeOver(): ChildProcess {
    const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...this.environment }
    return spawn(process.execPath, [child, this.#lostId], { env, stdio: 'inherit' })
  }

  async takeOverCompletely(): Promise<void> {
    const [code] = await once(this.takeOver(), 'exit')
    expect(code).toBe(0)
    const credential = await NodeCredential.open(this.#lostId, this.paths.nodeCredential, system)
    const client = new ControlClient({ ...system, url: control().app.nodeApiUrl, credential, timeoutMs: 5_000 })
    // It is the one that control accepts.
    await client.fetchCommittedSeqs(this.#lostId, signal)
  }

  /** Bytes of each segment that was restored. */
  restored(): ReadonlyMap<number, string> {
    const log = join(this.paths.wal, 'log')
    return new Map(readdirSync(log).map((name) => [Number(/\d{12}/.exec(name)?.[0]), readFileSync(join(log, name), 'latin1')]))
  }
}

/** Holds requests that leave, and answers that return. */
class Standstill {
  #held: PromiseWithResolvers<void> | undefined

  begin(): void {
    this.#held = Promise.withResolvers()
  }

  end(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  of(store: ObjectStore): ObjectStore {
    const passing = async <T>(request: () => Promise<T>): Promise<T> => {
      await this.#held?.promise
      const answer = await request()
      await this.#held?.promise
      return answer
    }
    return Object.create(store, {
      head: { value: (key: string, signal?: AbortSignal) => passing(() => store.head(key, signal)) },
      putIfAbsent: { value: (...args: Parameters<ObjectStore['putIfAbsent']>) => passing(() => store.putIfAbsent(...args)) },
    })
  }
}

/** The lost machine. It runs on, and copies records until it finds that it is fenced. It stands still from `freeze` to `thaw`. */
class Zombie implements AsyncDisposable {
  readonly acknowledged: number[] = []
  /** Text of each segment, as it was sent. */
  readonly sent: string[] = []
  #numbers = 0
  readonly #copier: Copier
  readonly #standstill: Standstill
  #running: Promise<void> | undefined
  #isStopping = false

  private constructor(copier: Copier, standstill: Standstill) {
    this.#copier = copier
    this.#standstill = standstill
  }

  static async create({ config }: Machine, nodeId: string): Promise<Zombie> {
    const { copyUrl } = config
    if (copyUrl === null) throw new Error('no copy store')
    const { store, prefix } = await openCopyStore({ ...config, copyUrl }, system)
    const folder = copyFolder(prefix, nodeId)
    await putWriterState(store, folder, { number: 0, state: { fences: 0, below: { [incarnation]: 0 } } }, signal)
    const [registered, standstill] = [Promise.resolve(0), new Standstill()]
    const options = { nodeId, incarnation, windowMs: 1, store: standstill.of(store), folder, logger, registered, ...system }
    return new Zombie(new Copier({ ...options, onCopied: () => {} }), standstill)
  }

  freeze(): void {
    this.#standstill.begin()
  }

  thaw(): void {
    this.#standstill.end()
  }

  async send(records: number): Promise<void> {
    await Promise.all(Array.from({ length: records }, () => this.#sendOne()))
  }

  sendOn(): void {
    this.#running = (async () => {
      while (!this.#copier.isFenced && !this.#isStopping) {
        void this.#sendOne().catch(() => undefined)
        await setTimeout(1)
      }
    })()
  }

  /** Resolves once it acknowledges nothing more. */
  async fenced(): Promise<void> {
    await this.#running
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw()
    this.#isStopping = true
    await this.#running
    await this.#copier.stop(AbortSignal.abort())
  }

  async #sendOne(): Promise<void> {
    const number = this.#numbers
    this.#numbers += 1
    const seq = Math.floor(number / segmentRecords)
    const at = this.sent[seq]?.length ?? 0
    const text = `record ${number};`
    this.sent[seq] = (this.sent[seq] ?? '') + text
    await this.#copier.copy({ logName: 'log', incarnation, seq, at, chunks: [Buffer.from(text)] })
    this.acknowledged.push(number)
  }
}

async function furnished() {
  const region = newRegion()
  const lost = await TestNode.register(control(), region)
  const [first, second] = [new Machine('first', region, lost.id), new Machine('second', region, lost.id)]
  for (const { config } of [first, second]) await registerMachine(config, control().app.nodeApiUrl, region)
  const zombie = await Zombie.create(first, lost.id)
  await zombie.send(recordsBefore)
  zombie.sendOn()
  // Control hears nothing of it.
  control().clock.advance(16_000)
  const folder = join(directory, lost.id, 'copies/copies', lost.id)
  return { lost, first, second, zombie, folder }
}

/** Control has read the markers of the region, again and again, while the work lasts. */
async function whileMarkersAreRead(work: Promise<unknown>): Promise<void> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  work.then(over, over)
  await until('the end of the takeover', async () => {
    await readMarkers(control().store)
    return isOver
  })
  await work
}

function expectAll(machine: Machine, { acknowledged, sent }: Zombie): void {
  const restored = machine.restored()
  for (const [seq, text] of restored) expect(sent[seq]?.startsWith(text), `segment ${seq}`).toBe(true)
  const all = [...restored.values()].join('')
  expect(acknowledged.filter((number) => !all.includes(`record ${number};`))).toEqual([])
  expect(acknowledged.length).toBeGreaterThanOrEqual(recordsBefore)
}

const moments: readonly (readonly [moment: string, has: (machine: Machine, folder: string) => boolean])[] = [
  ['its credential is durable', ({ paths }) => existsSync(paths.nodeCredential)],
  ['the fence is put', (_, folder) => existsSync(join(folder, 'fence/00000000000000000001'))],
  ['the first segment is written', ({ paths }) => existsSync(join(paths.wal, 'log'))],
  ['the log has its owner', ({ paths }) => existsSync(paths.walNodeId)],
  ['all is restored', ({ paths }) => existsSync(join(paths.node, 'restored'))],
]

const cases = moments.flatMap(([moment, has], index) =>
  [true, false].flatMap((isThird) => (isThorough || isThird === (index % 2 === 0) ? { moment, has, isThird } : [])),
)

test.each(cases)('killed once $moment; a third one goes on: $isThird', async ({ has, isThird }) => {
  const { first, second, zombie, folder } = await furnished()
  await using _ = zombie
  const child = first.takeOver()
  const exited = once(child, 'exit')
  await whileMarkersAreRead(
    (async () => {
      while (!has(first, folder) && child.exitCode === null) await setImmediate()
      child.kill('SIGKILL')
      await exited
    })(),
  )
  const rescuer = isThird ? second : first
  await whileMarkersAreRead(rescuer.takeOverCompletely())
  await zombie.fenced()
  expectAll(rescuer, zombie)
})

test.each(moments)('the lost machine stands still until %s, and goes on then', async (_, has) => {
  const { first, zombie, folder } = await furnished()
  await using _zombie = zombie
  zombie.freeze()
  const thawed = async (isOver: () => boolean) => {
    while (!has(first, folder) && !isOver()) await setImmediate()
    zombie.thaw()
  }
  let isOver = false
  const takenOver = first.takeOverCompletely().finally(() => {
    isOver = true
  })
  await whileMarkersAreRead(Promise.all([takenOver, thawed(() => isOver)]))
  await zombie.fenced()
  expectAll(first, zombie)
})

test('killed at any moment, several times', async () => {
  const seed = Math.floor(Math.random() * 1e9)
  console.log(`take-over-crash: seed ${seed}`)
  const random = new Random(seed)
  for (let round = 0; round < runs(2, 20); round += 1) {
    const { first, second, zombie } = await furnished()
    await using _ = zombie
    for (let kills = random.between(1, 3); kills > 0; kills -= 1) {
      const child = random.pick([first, second]).takeOver()
      const exited = once(child, 'exit')
      const kill = async () => {
        await setTimeout(random.between(100, 900))
        child.kill('SIGKILL')
        await exited
      }
      await whileMarkersAreRead(kill())
    }
    const rescuer = random.pick([first, second])
    await whileMarkersAreRead(rescuer.takeOverCompletely())
    await zombie.fenced()
    expectAll(rescuer, zombie)
  }
})

test('two machines that take over at once: both restore all, and control accepts one of them', async () => {
  const { lost, first, second, zombie } = await furnished()
  await using _ = zombie
  await whileMarkersAreRead(Promise.all([first, second].map((machine) => once(machine.takeOver(), 'exit'))))
  await zombie.fenced()
  const accepted = await Promise.all(
    [first, second].map(async (machine) => {
      const { secret } = await NodeCredential.open(lost.id, machine.paths.nodeCredential, system)
      lost.secret = secret
      return (await lost.call('GET', `committed-seqs?node_id=${lost.id}`)).status === 200
    }),
  )
  expect(accepted.toSorted()).toEqual([false, true])
  const [winner] = [first, second].filter((_, index) => accepted[index])
  if (winner === undefined) throw new Error('nobody is accepted')
  expectAll(winner, zombie)
})
