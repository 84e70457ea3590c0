/** One history: a world and a schedule of faults that a seed draws, and the laws that must hold. */
import { dataPaths } from '#config/data-paths.ts'
import './abort-signals.ts'
import './zstd.ts'
import { Buckets } from './bucket.ts'
import { Clients, Crews } from './clients.ts'
import { firstMachine, SimulatedControl } from './control.ts'
import { endpointIds, type Settings } from './control-database.ts'
import { findLeftCopies } from './copy-laws.ts'
import { Disk, isDiskFault } from './disk.ts'
import { withDrawnBytes } from './drawn-bytes.ts'
import { Faults } from './faults.ts'
import { type Draw, Kernel } from './kernel.ts'
import { checkLaws, findUnlistedOfViews, findUnsealed, findWrongCompactions, findWrongReceipts, type State } from './laws.ts'
import { type Loss, LostMachine } from './lost-machine.ts'
import { type NodeBounds, SimulatedNode } from './node.ts'
import { Rot } from './rot.ts'

export type Plan = { readonly seed: number; readonly steps: number; readonly kept?: readonly string[] | undefined }

export type History = {
  readonly seed: number
  /** Names of the faults that happened. */
  readonly faults: readonly string[]
  readonly digest: string
  readonly events: number
  readonly acknowledged: number
  /** Laws that did not hold, in words. */
  readonly broken: readonly string[]
  readonly last: readonly string[]
}

/** How often things go wrong, which differs from world to world. */
type World = {
  readonly bucketFaults: number
  readonly networkFaults: number
  readonly conversionFaults: number
  /** The share of calls to a disk that fail. */
  readonly diskFaults: number
  readonly killEveryMs: number
  readonly stopEveryMs: number
  readonly powerEveryMs: number
  readonly sendEveryMs: number
  /** How often compactions and other jobs begin. */
  readonly jobEveryMs: number
  /** The share of requests and answers of clients that get lost. */
  readonly clientFaults: number
  readonly settings: Settings
  readonly bounds: NodeBounds
  readonly recoveryWaitMs: number
  readonly diskMs: number
  /** When and how another machine gets the place of the node. Undefined: never. */
  readonly adoption: Loss | undefined
  /** How often a bit flips on each disk, and the share of reads that are wrong in one. Undefined: never. */
  readonly rot: { readonly everyMs: number; readonly misreads: number } | undefined
  /** The copy store. Undefined: there is none. */
  readonly copies:
    | {
        readonly meanMs: number
        readonly faults: number
        readonly staleChanges: number
        readonly isFit: boolean
        /** Puts under a condition replace what is there. */
        readonly ignoresConditions: boolean
      }
    | undefined
  /** How often the clock of a machine jumps. Undefined: never. */
  readonly jumpEveryMs: number | undefined
  /** How often processes of a machine stand still for a while. Undefined: never. */
  readonly freezeEveryMs: number | undefined
  /** How often every call of a disk fails for a while. Undefined: never. */
  readonly brokenDiskEveryMs: number | undefined
  /** How many nodes there are beside the first one, whose place another machine may get. */
  readonly others: number
}

/** Later additions have generators of their own, so that failures of the past keep their worlds. */
function drawWorld(kernel: Kernel): World {
  const draw = kernel.draw('world')
  // In some, processes live long enough to stop, and to be found wrong later.
  const copies = drawCopies(kernel.draw('copies'), kernel.draw('fit copy store'), kernel.draw('conditions'))
  const lifetime = kernel.draw('lifetime').pick([1, 1, 10]) * (copies?.isFit ? 10 : 1)
  const from = copies === undefined ? 'disk' : kernel.draw('takeover').pick(['disk', 'copies', 'copies of a lost disk'] as const)
  const freezes = kernel.draw('freezes')
  const brokenDisks = kernel.draw('broken disks')
  const hasViewFiles = kernel.draw('view files').chance(0.7)
  const windowed = kernel.draw('windows')
  const share = () => (draw.chance(0.5) ? 0 : draw.random.fraction() * 0.4)
  return {
    bucketFaults: share(),
    networkFaults: share(),
    conversionFaults: share() / 2,
    diskFaults: draw.chance(0.5) ? 0 : draw.random.fraction() * kernel.draw('disk faults').pick([0.02, 0.1]),
    killEveryMs: lifetime * draw.pick([300, 2_000, 20_000]),
    stopEveryMs: kernel.draw('stops').pick([700, 5_000, 50_000]),
    powerEveryMs: lifetime * draw.pick([500, 5_000, 50_000]),
    sendEveryMs: draw.pick([2, 20, 200]),
    jobEveryMs: draw.pick([100, 1_000, 10_000]),
    clientFaults: share(),
    settings: {
      segmentBytes: draw.pick([300, 2_000, 20_000]),
      segmentMaxAgeSeconds: draw.pick([0, 1, 10]),
      recordsPerSecond: draw.pick([20, 1e6, 1e6]),
      // Jobs of views and their files take most of a history: without them, it comes further.
      hasViewFiles,
      window: hasViewFiles && windowed.chance(0.5) ? windowed.pick(['1m', '1h', '168h']) : null,
      copiedEndpoints: copies === undefined ? [] : endpointIds.slice(0, kernel.draw('copied endpoints').pick([1, 2])),
      takeOverAfterMs: isHonest(copies) && from !== 'disk' && kernel.draw('choice').chance(0.8) ? 5_000 : null,
    },
    bounds: {
      diskBudgetBytes: draw.pick([50_000, 1e9, 1e9]),
      maxInFlightBytes: draw.pick([20_000, 1e6]),
      idempotencyKeysMax: draw.pick([20, 1e6, 1e6]),
    },
    recoveryWaitMs: draw.pick([0, 1_000]),
    diskMs: draw.pick([0.05, 0.5, 5]),
    adoption: draw.chance(from === 'disk' ? 0.4 : 0.7)
      ? { cutMs: draw.between(600, 4_000), copyMs: draw.between(0, 4_000), from, isLate: kernel.draw('late loss').chance(0.5) }
      : undefined,
    // Damage of a disk is counted by that disk.
    rot:
      draw.chance(0.5) && from === 'disk'
        ? { everyMs: draw.pick([20, 200, 2_000]), misreads: draw.pick([0, 0.001, 0.02]) }
        : undefined,
    copies,
    jumpEveryMs: draw.chance(0.4) ? draw.pick([200, 2_000, 20_000]) : undefined,
    freezeEveryMs: freezes.chance(0.3) ? lifetime * freezes.pick([500, 5_000]) : undefined,
    brokenDiskEveryMs: brokenDisks.chance(0.2) ? brokenDisks.pick([300, 3_000]) : undefined,
    others: kernel.draw('several nodes').pick([0, 0, 0, 1, 2]),
  }
}

/** Whether the store soon passes the check before a takeover that no person has asked for. */
function isHonest(copies: World['copies']): boolean {
  return copies !== undefined && copies.staleChanges === 0 && copies.faults < 0.2 && !copies.ignoresConditions
}

/** Most stores are fit: a process that starts soon passes its check of the store, and has copies for a while. */
function drawCopies(draw: Draw, ofFit: Draw, ofConditions: Draw): World['copies'] {
  if (draw.chance(0.6)) return undefined
  const isFit = ofFit.chance(0.75)
  const faults = draw.chance(0.5) ? 0 : draw.random.fraction() * (isFit ? 0.01 : 0.4)
  const ignoresConditions = ofConditions.chance(0.25)
  return {
    meanMs: draw.pick(isFit ? [2, 5, 20] : [2, 20, 500]),
    ...{ faults, staleChanges: draw.pick([0, 5, 50]), isFit, ignoresConditions },
  }
}

/** From a second to a month. */
const jumpsMs = [1_000, 60_000, 86_400_000, 2_592_000_000] as const

/** From a loose cable to a controller that is reset. */
const brokenDisksMs = [20, 400, 2_000] as const

/** From a pause of the runtime to a machine that was suspended. */
const freezesMs = [100, 3_000, 40_000] as const

const { nodeId, walNodeId, windows } = dataPaths('/data')

/** A takeover may make a history longer by so many events. */
const takeOverSteps = 20_000

/** The laws hold at any moment, and are checked this often. */
const lawsMs = 500

/** How long nothing goes wrong at the end, at most, until everything is delivered. */
const calmMs = 20 * 60_000

/**
 * Runs a history of about that many events with faults, and then until all is delivered. `kept` names the only faults that may happen.
 */
export function runHistory(plan: Plan): Promise<History> {
  const kernel = new Kernel(plan.seed)
  return withDrawnBytes(kernel.draw('bytes').random, () => runIn(kernel, plan))
}

async function runIn(kernel: Kernel, { seed, steps, kept }: Plan): Promise<History> {
  const world = drawWorld(kernel)
  const faults = new Faults(kernel, kept)
  const setting = { kernel, world, faults }
  const buckets = new Buckets({
    ...{ draw: kernel.draw('bucket'), meanMs: 10 },
    fault: faults.of('bucket', world.bucketFaults, ['refused', 'answer lost'] as const),
  })
  const copyStore = openCopyStore(setting)
  const control = await SimulatedControl.open(
    ...([world.settings, buckets, kernel, { draw: kernel.draw('network'), meanMs: 5 }] as const),
    faults.of('network', world.networkFaults, ['cut', 'answer lost'] as const),
  )
  const conversionFault = faults.of('conversion', world.conversionFaults, ['exits', 'hangs', 'fails'] as const)
  const problems: string[] = []
  const addMachine = (name: string, disk: Disk, adopts: boolean, lostId?: string) => {
    const aheadMs = scheduleJumps(name, setting)
    const { bounds, recoveryWaitMs } = world
    const node = new SimulatedNode({
      ...{ name, kernel, disk, buckets, copyStore, control, bounds, recoveryWaitMs, aheadMs, conversionFault, adopts, lostId },
    })
    keepRunning(node, kernel, problems)
    scheduleFaults(node, setting, problems)
    scheduleFreezes(node, setting)
    return node
  }
  const node = addMachine(firstMachine, newDisk('disk', setting), false)
  const { disk } = node
  const others = Array.from({ length: world.others }, (_, index) => {
    const name = `${firstMachine}-${index + 2}`
    // The laws of damage know the disks of the first one.
    return addMachine(name, newDisk(`disk of ${name}`, { ...setting, world: { ...world, rot: undefined } }), false)
  })
  const clients = new Crews([node, ...others].map((each) => openClients(each, setting)))
  faults.repeat(world.killEveryMs * 5, 'restart of control', () => control.restart())
  faults.repeat(world.jobEveryMs, 'a view is detached', () => void control.detach())
  const stopJobs = scheduleJobs(kernel, world, control)
  let adopter: SimulatedNode | undefined
  const replace = (lostId: string | undefined) => {
    const other = newDisk('disk of the adopter', setting)
    if (lostId === undefined) disk.copyTo(other)
    adopter = addMachine('adopter', other, true, lostId)
    return adopter
  }
  const { adoption: loss } = world
  const lost = loss && new LostMachine({ loss, kernel, faults, node, control, copyStore, replace })
  const state = (): State => ({
    ...{ disks: [disk, adopter?.disk], others, buckets, copyStore, control },
    ...{ sent: clients.sent, mayLackKeys: clients.mayLackKeys, isClockSteady: world.jumpEveryMs === undefined },
    restored: lost?.restored,
    copiedEndpoints: world.settings.copiedEndpoints,
    window: world.settings.window,
  })
  const look = () => {
    problems.push(...checkLaws(state()).broken, ...clients.problems, ...clients.findHeldMemory(world.bounds.maxInFlightBytes))
    kernel.after(lawsMs, 'laws', look)
  }
  look()
  await kernel.runUntil(() => kernel.events >= steps || problems.length > 0, 3_600_000)
  clients.slowDown()
  await lost?.finish(() => problems.length > 0 || kernel.events >= steps + takeOverSteps)
  faults.end()
  lost?.endCut()
  clients.end()
  stopJobs()
  const broken = await findBrokenAtEnd({ kernel, clients, problems, state, machines: () => [node, adopter, ...others] })
  await control.close()
  return {
    ...{ seed, faults: faults.happened, digest: kernel.digest(), events: kernel.events, last: kernel.last },
    acknowledged: clients.sent.filter(({ isAcknowledged }) => isAcknowledged).length,
    broken: [...problems, ...broken],
  }
}

function openClients(node: SimulatedNode, { kernel, world, faults }: Setting): Clients {
  const { disk } = node
  return new Clients({
    ...{ node, kernel, faults, endpoints: endpointIds, everyMs: world.sendEveryMs, lost: world.clientFaults },
    mayLackKeys: () => disk.hasFailedIn('/stored-requests') || disk.rot.paths.size > 0,
    // Segments in quarantine take room until a person removes them.
    mayLackRoom: () => world.bounds.idempotencyKeysMax < 1_000 || disk.rot.taken.size > 0,
  })
}

type Setting = { readonly kernel: Kernel; readonly world: World; readonly faults: Faults }

function openCopyStore({ kernel, world: { copies }, faults }: Setting): Buckets | undefined {
  if (copies === undefined) return undefined
  const draw = kernel.draw('copy store')
  const { meanMs, staleChanges, ignoresConditions } = copies
  const stale = faults.of('copy store', staleChanges > 0 ? 0.5 : 0, ['old list'] as const)
  return new Buckets({
    ...{ draw, meanMs, ignoresConditions },
    fault: faults.of('copy store', copies.faults, ['refused', 'answer lost'] as const),
    staleChanges: () => (stale() === undefined ? 0 : draw.between(1, staleChanges)),
  })
}

function newDisk(name: string, { kernel, world, faults }: Setting): Disk {
  const misread = faults.of(`${name} reads`, world.rot?.misreads ?? 0, ['misread'] as const)
  const disk = new Disk({
    draw: kernel.draw(name),
    rot: new Rot(kernel.draw('rot')),
    rotDraw: kernel.draw(`rot of ${name}`),
    misreads: () => misread() !== undefined,
    meanMs: world.diskMs,
    fault: faults.of(name, world.diskFaults, ['fails', 'full', 'stuck'] as const),
  })
  const draw = kernel.draw(`${name}: broken`)
  if (world.brokenDiskEveryMs !== undefined)
    faults.repeat(world.brokenDiskEveryMs, `${name}: broken`, () => {
      disk.isBroken = true
      kernel.after(draw.pick(brokenDisksMs), `${name}: whole`, () => {
        disk.isBroken = false
      })
    })
  return disk
}

type End = {
  readonly kernel: Kernel
  readonly clients: Crews
  readonly problems: readonly string[]
  readonly state: () => State
  readonly machines: () => readonly (SimulatedNode | undefined)[]
}

/** Waits until nothing is left to do, and checks the laws of the end. */
async function findBrokenAtEnd({ kernel, clients, problems, state, machines }: End): Promise<readonly string[]> {
  const { buckets, control } = state()
  const left = async () => {
    await control.readStored()
    return [
      ...(clients.areIdle ? [] : ['answers for clients']),
      ...checkLaws(state()).left,
      ...findLeftCopies(state()),
      ...((await control.hasWork()) ? ['a job, or commits that control must read'] : []),
    ]
  }
  const isOver = await untilOver(kernel, async () => problems.length > 0 || (await left()).length === 0)
  const ofEnd = async () => [
    ...findWrongCompactions(buckets, await control.listMergedFiles()),
    ...findUnlistedOfViews(state()),
    ...(await findWrongReceipts(state())),
    ...(await control.findWrongCounters()),
    ...(await control.findLeftOut()),
  ]
  const leftOver = async () => [
    `left in the end: ${(await left()).join(', ')}`,
    ...machines().flatMap((machine) => machine?.reasons ?? []),
  ]
  return [
    ...clients.problems,
    ...(clients.areIdle ? clients.findHeldMemory(0) : []),
    ...checkLaws(state()).broken,
    ...(await control.findWrongCommits()),
    ...control.findOtherNodes(),
    ...(await (isOver ? ofEnd() : leftOver())),
  ]
}

/** Looks each second: what is left is counted from the disk. */
async function untilOver(kernel: Kernel, isOver: () => Promise<boolean>): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < calmMs; waitedMs += 1_000) {
    if (await isOver()) return true
    await kernel.runUntil(() => false, 1_000)
  }
  return false
}

/** Starts what does not run, as a supervisor does. */
function keepRunning(node: SimulatedNode, kernel: Kernel, problems: string[]): void {
  const start = (process: 'ingest' | 'delivery') => (process === 'ingest' ? node.startIngest(endpointIds) : node.startDelivery())
  const look = () => {
    for (const process of ['ingest', 'delivery'] as const) {
      if (node.lives(process)) continue
      start(process).catch((error: unknown) => {
        node.kill(process, 'did not start')
        if (!isDiskFault(error) && !wasRepaired(node, error as Error))
          problems.push(`${process} did not start: ${(error as Error).stack}`)
      })
    }
    kernel.after(100, 'supervisor', look)
  }
  look()
}

/** A process may refuse to start if a file of its own is damaged, and names it. A person restores it then. The ids are compared with each other. */
function wasRepaired({ disk }: SimulatedNode, { message }: Error): boolean {
  const named = [...message.matchAll(/\/data\/[\w./-]*\w/g)].map(([path]) => path)
  const suspects = [...named, ...(named.includes(nodeId) ? [walNodeId] : [])]
  for (const path of suspects) disk.restore(path)
  return suspects.some((path) => disk.rot.paths.has(path))
}

function scheduleFaults(node: SimulatedNode, { faults, world }: Setting, problems: string[]): void {
  for (const process of ['ingest', 'delivery'] as const)
    faults.repeat(2 * world.killEveryMs, `${node.name}: kill of ${process}`, () => node.kill(process))
  for (const process of ['ingest', 'delivery'] as const)
    faults.repeat(world.stopEveryMs, `${node.name}: stop of ${process}`, () => {
      const fail = (error: unknown) => {
        if (!isDiskFault(error)) problems.push(`${process} did not stop: ${(error as Error).stack}`)
      }
      node.stop(process).then((isClean) => isClean && process === 'ingest' && problems.push(...findUnsealed(node.disk)), fail)
    })
  faults.repeat(world.powerEveryMs, `${node.name}: power loss`, () => node.losePower())
  if (world.settings.window !== null)
    faults.repeat(3 * world.jobEveryMs, `${node.name}: loss of indexes`, () => node.disk.loseFilesIn(windows))
  if (world.rot !== undefined && !node.name.startsWith(`${firstMachine}-`))
    faults.repeat(world.rot.everyMs, `${node.name}: bit rot`, () => node.disk.decay())
}

/** Processes of the machine stand still: one, or both. */
function scheduleFreezes(node: SimulatedNode, { kernel, faults, world: { freezeEveryMs } }: Setting): void {
  if (freezeEveryMs === undefined) return
  const draw = kernel.draw(`freezes of ${node.name}`)
  faults.repeat(freezeEveryMs, `${node.name}: freeze`, () =>
    node.freeze(draw.pick([['ingest'], ['delivery'], ['ingest', 'delivery']] as const), draw.delay(draw.pick(freezesMs))),
  )
}

/** Returns how far the clock of the machine is off. */
function scheduleJumps(name: string, { kernel, faults, world: { jumpEveryMs } }: Setting): () => number {
  const draw = kernel.draw(`clock of ${name}`)
  let aheadMs = 0
  if (jumpEveryMs !== undefined)
    faults.repeat(jumpEveryMs, `${name}: clock jump`, () => {
      aheadMs += draw.pick([-1, 1]) * draw.pick(jumpsMs)
    })
  return () => aheadMs
}

/** Asks for compactions and other jobs. Returns a function that ends it. */
function scheduleJobs(kernel: Kernel, world: World, control: SimulatedControl): () => void {
  let isOver = false
  const repeat = (name: string, ask: (draw: Draw) => Promise<void>) => {
    const draw = kernel.draw(name)
    const wait = () =>
      kernel.after(draw.delay(world.jobEveryMs), name, () => {
        if (isOver) return
        wait()
        void ask(draw)
      })
    wait()
  }
  repeat('compactions', (draw) => control.compact(draw.pick(endpointIds)))
  if (world.settings.hasViewFiles) repeat('jobs', (draw) => control.startJob(draw))
  return () => {
    isOver = true
  }
}
