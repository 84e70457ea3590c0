/**
 * The steps of a check of a store: each tries one promise of it.
 *
 * Owns: the requests of each step, and which answer is wrong. Does not own: when a step is tried and how often (store-check.ts).
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'

/**
 * `needed`: every copy rests on the step. `fence`: a second fence beside the reads. `parts`: large files of deliveries. `advice`: nothing.
 * `left`: something that the check wrote.
 */
export type StepKind = 'needed' | 'fence' | 'parts' | 'advice' | 'left'

/** The requests that other processes send. */
export type SeenStore = Pick<ObjectStore, 'get' | 'head' | 'list' | 'putIfAbsent'>

export type Trial = {
  readonly store: ObjectStore
  /** The store as another process sees it. */
  readonly other: SeenStore
  readonly racers: readonly SeenStore[]
  /** All new names begin with it. */
  readonly prefix: string
  newName(): string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** `problem`: something is wrong, or, if it `isUnknown`, kept the step from being tried. `note`: worth knowing. */
export type Outcome = {
  readonly problem?: string | undefined
  readonly isUnknown?: boolean | undefined
  readonly note?: string | undefined
}

export type Step = {
  readonly name: string
  readonly kind: StepKind
  readonly isRepeated: boolean
  readonly run: (trial: Trial) => Promise<Outcome>
}

const put = { contentType: 'application/octet-stream', metadata: {} }
const fine: Outcome = {}
const clockMsMax = 5_000

/** Returns the steps that fit the store. The first one needs nothing but a put and a read. */
export function stepsOf(
  { tryChecksums, tryParts, tryTorn, tryVersions, readTime }: ObjectStore,
  { hasRacers, isThorough }: { readonly hasRacers: boolean; readonly isThorough: boolean },
): readonly Step[] {
  const always: readonly Step[] = [
    { name: 'a put is read', kind: 'needed', isRepeated: true, run: isRead },
    { name: 'a name that was missing is read once it is put', kind: 'needed', isRepeated: true, run: isReadAfterMiss },
    { name: 'a put that replaces is read', kind: 'needed', isRepeated: true, run: isReplaced },
    { name: 'a put is listed', kind: 'needed', isRepeated: true, run: isListed },
    { name: 'what is removed is gone', kind: 'needed', isRepeated: true, run: isGone },
    { name: 'a put with If-None-Match is taken if the name is free', kind: 'needed', isRepeated: true, run: isTaken },
    { name: 'a put with If-None-Match is refused if the name is taken', kind: 'fence', isRepeated: true, run: isRefused },
  ]
  const race: Step = { name: 'of several such puts at once one is taken', kind: 'fence', isRepeated: true, run: isWonOnce }
  const torn: Step = { name: 'a put that breaks off leaves nothing', kind: 'needed', isRepeated: true, run: leavesNothingTorn }
  const parts: Step = { name: 'an abandoned upload leaves nothing', kind: 'parts', isRepeated: false, run: leavesNoParts }
  const sums: Step = { name: 'damaged content is refused', kind: 'advice', isRepeated: false, run: refusesDamage }
  const versions: Step = { name: 'what is removed leaves no version', kind: 'advice', isRepeated: false, run: leavesNoVersion }
  const time: Step = { name: 'its clock is right', kind: 'advice', isRepeated: false, run: tellsTime }
  return [
    ...always,
    ...(hasRacers ? [race] : []),
    ...(isThorough && tryTorn ? [torn] : []),
    ...(isThorough && tryParts ? [parts] : []),
    ...(isThorough && tryVersions ? [versions] : []),
    ...(isThorough && tryChecksums ? [sums] : []),
    ...(isThorough && readTime ? [time] : []),
  ]
}

async function isRead({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, body] = [newName(), Buffer.from('first')]
  await store.put(name, body, { ...put, signal })
  return compare(body, await other.get(name, signal), 'right after the put')
}

/** A fence is looked for again and again while it is missing. A store that remembers the miss would hide it. */
async function isReadAfterMiss({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, body] = [newName(), Buffer.from('found')]
  if ((await other.head(name, signal)) !== undefined) return { problem: 'it is there before it is put' }
  if ((await other.get(name, signal)) !== undefined) return { problem: 'it is read before it is put' }
  await store.put(name, body, { ...put, signal })
  if ((await other.head(name, signal)) === undefined) return { problem: 'it is still missing right after the put' }
  return compare(body, await other.get(name, signal), 'right after the put')
}

async function isReplaced({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, second] = [newName(), Buffer.from('second')]
  await store.put(name, Buffer.from('first'), { ...put, signal })
  await other.get(name, signal)
  await store.put(name, second, { ...put, signal })
  return compare(second, await other.get(name, signal), 'right after the put')
}

async function isListed({ store, other, prefix, newName, signal }: Trial): Promise<Outcome> {
  const name = newName()
  if (await lists(other, prefix, name, signal)) return { problem: 'it is in the list before it is put' }
  await store.put(name, Buffer.from('listed'), { ...put, signal })
  return (await lists(other, prefix, name, signal)) ? fine : { problem: 'it is not in the list right after the put' }
}

async function isGone({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const name = newName()
  await store.put(name, Buffer.from('removed'), { ...put, signal })
  await other.get(name, signal)
  await store.remove(name, signal)
  if ((await other.head(name, signal)) !== undefined) return { problem: 'it is there right after the removal' }
  return (await other.get(name, signal)) === undefined ? fine : { problem: 'it is read right after the removal' }
}

async function isTaken({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, body] = [newName(), Buffer.from('conditional')]
  const isNew = await store.putIfAbsent(name, body, { ...put, signal })
  const found = await other.get(name, signal)
  if (!isNew && found === undefined) return { problem: 'it was refused, and the name is still free' }
  return { ...compare(body, found, 'right after the put'), ...(isNew ? {} : { note: refusedOwn }) }
}

const refusedOwn = 'it refused a put that it had stored: Inlet recognises its own objects'

async function isRefused({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, first] = [newName(), Buffer.from('first')]
  await store.put(name, first, { ...put, signal })
  if (await store.putIfAbsent(name, Buffer.from('second'), { ...put, signal })) return { problem: 'it replaced the object' }
  return compare(first, await other.get(name, signal), 'although the other put was refused')
}

/** A name that was removed is tried again: a store may remember it. */
async function isWonOnce(trial: Trial): Promise<Outcome> {
  const name = trial.newName()
  const first = await raceFor(name, 'new', trial)
  if (first.problem !== undefined) return first
  await trial.store.remove(name, trial.signal)
  const second = await raceFor(name, 'removed', trial)
  return { ...second, note: first.note ?? second.note }
}

async function raceFor(name: string, state: string, { racers, other, signal }: Trial): Promise<Outcome> {
  const bodies = racers.map((_, number) => Buffer.from(`${state}, writer ${number}`))
  const puts = racers.map((racer, number) => raceOnce(racer, name, bodies[number] ?? Buffer.alloc(0), signal))
  const ends = await Promise.allSettled(puts)
  const answered = ends.filter((end) => end.status === 'fulfilled').map(({ value }) => value)
  const [failed] = ends.filter((end) => end.status === 'rejected')
  // A store may ask all but one to try again.
  if (answered.length === 0 && failed !== undefined) throw failed.reason
  const won = ends.flatMap((end, number) => (end.status === 'fulfilled' && end.value.isNew ? [bodies[number]] : []))
  if (won.length > 1) return { problem: `${won.length} of ${racers.length} were taken for a ${state} name` }
  const found = await other.get(name, signal)
  if (found === undefined) return { problem: `none of ${racers.length} was taken for a ${state} name` }
  const isOne = (content: Uint8Array | undefined) => content !== undefined && bodies.some((body) => body.equals(content))
  if (won.length === 0 && !isOne(found)) return { problem: `none of ${racers.length} is read for a ${state} name` }
  if (answered.some(({ isNew, seen }) => !isNew && !isOne(seen)))
    return { problem: 'one was refused, and then did not read the object' }
  if (won[0] !== undefined && !won[0].equals(found)) return { problem: 'another one is read than the one that was taken' }
  return won.length === 0 && failed === undefined ? { note: refusedOwn } : fine
}

/** One that is refused reads the object, as a fenced writer does. */
async function raceOnce(racer: SeenStore, name: string, body: Uint8Array, signal: AbortSignal) {
  const isNew = await racer.putIfAbsent(name, body, { ...put, attempts: 1, signal })
  return { isNew, seen: isNew ? undefined : await racer.get(name, signal) }
}

/** The store may notice the end of the connection a moment later. */
async function leavesNothingTorn({ store, other, newName, signal }: Trial): Promise<Outcome> {
  const [name, body] = [newName(), Buffer.from('whole')]
  await store.tryTorn?.(name, { ...put, signal })
  if ((await other.get(name, signal)) !== undefined) return { problem: 'a part of it is read' }
  if (!(await store.putIfAbsent(name, body, { ...put, signal }))) return { problem: 'the name is taken' }
  return compare(body, await other.get(name, signal), 'after another put')
}

async function leavesNoParts({ store, other, prefix, newName, signal }: Trial): Promise<Outcome> {
  const name = newName()
  await store.tryParts?.(name, { ...put, signal })
  if ((await other.head(name, signal)) !== undefined || (await lists(other, prefix, name, signal)))
    return { problem: 'its object is visible' }
  try {
    const left = (await store.countUploads?.(name, signal)) ?? 0
    return left === 0 ? fine : { problem: 'it is still listed among the uploads' }
  } catch (error) {
    if (!(error instanceof ObjectStoreError) || error.reason !== 'list_denied') throw error
    return { problem: 'the key may not list uploads (s3:ListBucketMultipartUploads), so nobody looked', isUnknown: true }
  }
}

async function leavesNoVersion({ store, newName, signal }: Trial): Promise<Outcome> {
  if ((await store.tryVersions?.(newName(), { ...put, signal })) !== true) return fine
  return { problem: 'the bucket keeps versions, also of what this check removed: let a lifecycle rule remove noncurrent ones' }
}

async function refusesDamage({ store, newName, signal }: Trial): Promise<Outcome> {
  const { refused, stored } = (await store.tryChecksums?.(newName, { ...put, signal })) ?? { refused: [], stored: [] }
  const inside = 'Inlet finds damage by the checksums in its own objects'
  if (stored.length === 0) return { note: `it refuses a wrong ${refused.join(', ')}` }
  if (refused.length === 0) return { problem: `it stores content that differs from its checksum; ${inside}` }
  return { note: `it refuses a wrong ${refused.join(', ')}, and stores one with a wrong ${stored.join(', ')}; ${inside}` }
}

/** The store tells whole seconds. */
async function tellsTime({ store, prefix, clock, signal }: Trial): Promise<Outcome> {
  const before = clock.now()
  const theirs = await store.readTime?.(prefix, signal)
  if (theirs === undefined) return { note: 'it tells no time' }
  const ours = (before + clock.now()) / 2
  const aheadMs = theirs + 500 - ours
  const seconds = Math.round(Math.abs(aheadMs) / 1_000)
  if (Math.abs(aheadMs) <= clockMsMax) return fine
  return { problem: `it is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine` }
}

async function lists(store: SeenStore, prefix: string, name: string, signal: AbortSignal): Promise<boolean> {
  for await (const { key } of store.list(prefix, signal)) if (key === name) return true
  return false
}

function compare(body: Buffer, found: Uint8Array | undefined, when: string): Outcome {
  if (found === undefined) return { problem: `it is missing ${when}` }
  return body.equals(found) ? fine : { problem: `another content is read ${when}` }
}
