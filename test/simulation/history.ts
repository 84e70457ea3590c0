/** One history: a world and a schedule of faults that a seed draws, and the laws that must hold. */
import { dataPaths } from '#config/data-paths.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import './abort-signals.ts'
import { Buckets } from './bucket.ts'
import { SimulatedControl } from './control.ts'
import { endpointIds } from './control-database.ts'
import { Disk } from './disk.ts'
import { withDrawnBytes } from './drawn-bytes.ts'
import { Faults } from './faults.ts'
import { type Draw, Kernel } from './kernel.ts'
import { checkLaws, findWrongCompactions, type Sent } from './laws.ts'
import { SimulatedNode } from './node.ts'
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
  readonly powerEveryMs: number
  readonly sendEveryMs: number
  readonly compactEveryMs: number
  readonly segmentBytes: number
  readonly segmentMaxAgeMs: number
  readonly diskMs: number
  /** When the node is cut off from control, and how long after that a copy of its disk is adopted; undefined: never. */
  readonly adoption: { readonly cutMs: number; readonly copyMs: number } | undefined
  /** How often a bit flips on each disk, and the share of reads that are wrong in one. Undefined: never. */
  readonly rot: { readonly everyMs: number; readonly misreads: number } | undefined
  /** How often the clock of a machine jumps. Undefined: never. */
  readonly jumpEveryMs: number | undefined
}

function drawWorld(draw: Draw): World {
  const share = () => (draw.chance(0.5) ? 0 : draw.random.fraction() * 0.4)
  return {
    bucketFaults: share(),
    networkFaults: share(),
    conversionFaults: share() / 2,
    diskFaults: draw.chance(0.5) ? 0 : draw.random.fraction() * 0.02,
    killEveryMs: draw.pick([300, 2_000, 20_000]),
    powerEveryMs: draw.pick([500, 5_000, 50_000]),
    sendEveryMs: draw.pick([2, 20, 200]),
    compactEveryMs: draw.pick([100, 1_000, 10_000]),
    segmentBytes: draw.pick([300, 2_000, 20_000]),
    segmentMaxAgeMs: draw.pick([50, 1_000, 10_000]),
    diskMs: draw.pick([0.05, 0.5, 5]),
    adoption: draw.chance(0.4) ? { cutMs: draw.between(600, 4_000), copyMs: draw.between(0, 4_000) } : undefined,
    rot: draw.chance(0.5) ? { everyMs: draw.pick([20, 200, 2_000]), misreads: draw.pick([0, 0.001, 0.02]) } : undefined,
    jumpEveryMs: draw.chance(0.4) ? draw.pick([200, 2_000, 20_000]) : undefined,
  }
}

/** From a second to a month. */
const jumpsMs = [1_000, 60_000, 86_400_000, 2_592_000_000] as const

const { nodeId, walNodeId } = dataPaths('/data')

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
  const draw = kernel.draw('world')
  const world = drawWorld(draw)
  const faults = new Faults(kernel, kept)
  const newDisk = (name: string) => {
    const misread = faults.of(`${name} reads`, world.rot?.misreads ?? 0, ['misread'] as const)
    return new Disk({
      draw: kernel.draw(name),
      rot: new Rot(kernel.draw('rot')),
      rotDraw: kernel.draw(`rot of ${name}`),
      misreads: () => misread() !== undefined,
      meanMs: world.diskMs,
      fault: faults.of(name, world.diskFaults, ['fails', 'full', 'stuck'] as const),
    })
  }
  const buckets = new Buckets({
    ...{ draw: kernel.draw('bucket'), meanMs: 10 },
    fault: faults.of('bucket', world.bucketFaults, ['refused', 'answer lost'] as const),
  })
  const control = await SimulatedControl.open(
    buckets,
    kernel,
    { draw: kernel.draw('network'), meanMs: 5 },
    faults.of('network', world.networkFaults, ['cut', 'answer lost'] as const),
  )
  const conversionFault = faults.of('conversion', world.conversionFaults, ['exits', 'hangs', 'fails'] as const)
  const problems: string[] = []
  const addMachine = (name: string, disk: Disk, adopts: boolean) => {
    const aheadMs = scheduleJumps(name, kernel, faults, world)
    const node = new SimulatedNode({ name, kernel, disk, buckets, control, aheadMs, conversionFault, adopts })
    keepRunning(node, { kernel, world, control, problems })
    scheduleFaults(node, faults, world)
    return node
  }
  const node = addMachine('node', newDisk('disk'), false)
  const sent = new Map<string, Sent>()
  faults.repeat(world.killEveryMs * 5, 'restart of control', () => control.restart())
  faults.repeat(world.compactEveryMs, 'a view is detached', () => void control.detach())
  const stopCompacting = scheduleCompactions(kernel, world, control)
  const stopSending = scheduleClient(node, kernel, world, sent)
  let adopter: SimulatedNode | undefined
  const { adoption } = world
  if (adoption !== undefined) {
    kernel.after(adoption.cutMs, 'cut off', () => faults.next('cut off') && control.cutOff.add('node'))
    kernel.after(adoption.cutMs + adoption.copyMs, 'adoption', () => {
      if (!faults.next('adoption')) return
      const copy = newDisk('disk of the adopter')
      node.disk.copyTo(copy)
      adopter = addMachine('adopter', copy, true)
    })
  }
  const state = () => ({ disks: [node.disk, adopter?.disk] as const, buckets, control, sent })
  const look = () => {
    problems.push(...checkLaws(state()).broken)
    kernel.after(lawsMs, 'laws', look)
  }
  look()
  await kernel.runUntil(() => kernel.events >= steps || problems.length > 0, 3_600_000)
  faults.end()
  control.cutOff.clear()
  stopSending()
  stopCompacting()
  const isDelivered = await untilDelivered(kernel, async () => {
    return problems.length > 0 || (checkLaws(state()).isDelivered && !(await control.hasWork()))
  })
  const broken = [
    ...checkLaws(state()).broken,
    ...(await control.findWrongCommits()),
    ...(isDelivered ? findWrongCompactions(buckets, await control.listMergedFiles()) : []),
  ]
  await control.close()
  const left = [node, adopter].flatMap((each) => each?.reasons ?? [])
  return {
    ...{ seed, faults: faults.happened, digest: kernel.digest(), events: kernel.events, last: kernel.last },
    acknowledged: [...sent.values()].filter(({ isAcknowledged }) => isAcknowledged).length,
    broken: [...problems, ...broken, ...(isDelivered ? [] : [`not everything was delivered in time: ${left.join('; ')}`])],
  }
}

/** Looks each second: what is left is counted from the disk. */
async function untilDelivered(kernel: Kernel, isDelivered: () => Promise<boolean>): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < calmMs; waitedMs += 1_000) {
    if (await isDelivered()) return true
    await kernel.runUntil(() => false, 1_000)
  }
  return false
}

type Running = {
  readonly kernel: Kernel
  readonly world: World
  readonly control: SimulatedControl
  readonly problems: string[]
}

/** Starts what does not run, as a supervisor does. A machine that control refuses takes no more data. */
function keepRunning(node: SimulatedNode, { kernel, world, control, problems }: Running): void {
  const logs = endpointIds
  const start = (process: 'ingest' | 'delivery') =>
    process === 'ingest' ? node.startIngest(logs, world.segmentBytes, world.segmentMaxAgeMs) : node.startDelivery()
  const look = () => {
    const isRefused = control.refuses(node.name) && !control.cutOff.has(node.name)
    if (isRefused) node.kill('ingest', 'fenced')
    for (const process of ['ingest', 'delivery'] as const) {
      if (node.lives(process) || (isRefused && process === 'ingest')) continue
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

/** A process may end when its disk fails: it is started again. */
function isDiskFault(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException
  return code === 'EIO' || code === 'ENOSPC' || (cause !== undefined && isDiskFault(cause))
}

function scheduleFaults(node: SimulatedNode, faults: Faults, world: World): void {
  for (const process of ['ingest', 'delivery'] as const)
    faults.repeat(2 * world.killEveryMs, `${node.name}: kill of ${process}`, () => node.kill(process))
  faults.repeat(world.powerEveryMs, `${node.name}: power loss`, () => node.losePower())
  if (world.rot !== undefined) faults.repeat(world.rot.everyMs, `${node.name}: bit rot`, () => node.disk.decay())
}

/** Returns how far the clock of the machine is off. */
function scheduleJumps(name: string, kernel: Kernel, faults: Faults, { jumpEveryMs }: World): () => number {
  const draw = kernel.draw(`clock of ${name}`)
  let aheadMs = 0
  if (jumpEveryMs !== undefined)
    faults.repeat(jumpEveryMs, `${name}: clock jump`, () => {
      aheadMs += draw.pick([-1, 1]) * draw.pick(jumpsMs)
    })
  return () => aheadMs
}

/** Asks for compactions. Returns a function that ends it. */
function scheduleCompactions(kernel: Kernel, world: World, control: SimulatedControl): () => void {
  const draw = kernel.draw('compactions')
  let isOver = false
  const compact = () => {
    if (isOver) return
    kernel.after(draw.delay(world.compactEveryMs), 'compaction', compact)
    void control.compact(draw.pick(endpointIds))
  }
  kernel.after(draw.delay(world.compactEveryMs), 'compaction', compact)
  return () => {
    isOver = true
  }
}

/** Sends records that can be told apart. Returns a function that ends it. */
function scheduleClient(node: SimulatedNode, kernel: Kernel, world: World, sent: Map<string, Sent>): () => void {
  const draw = kernel.draw('client')
  const envelope = encodeEnvelope({ protocol: 'http' })
  let isOver = false
  const send = () => {
    if (isOver) return
    kernel.after(draw.delay(world.sendEveryMs), 'client', send)
    const { log } = node
    if (log === undefined) return
    const endpoint = draw.pick(endpointIds)
    const ids = Array.from({ length: draw.between(1, 4) }, () => `${sent.size}-${draw.between(0, 1e9)}`)
    const lines = ids.map((id) => `{"id":"${id}","endpoint":"${endpoint}","pad":"${'x'.repeat(draw.between(0, 200))}"}`)
    const record: Sent = { endpoint, ids, lines, isAcknowledged: false }
    sent.set(ids[0] ?? '', record)
    log
      .append(endpoint, {
        layout: 'lines',
        receivedAtMicros: node.now() * 1000,
        recordCount: ids.length,
        envelope,
        payload: [Buffer.from(lines.join('\n'))],
      })
      .then(
        () => {
          record.isAcknowledged = true
        },
        () => undefined,
      )
  }
  kernel.after(500, 'client', send)
  return () => {
    isOver = true
  }
}
