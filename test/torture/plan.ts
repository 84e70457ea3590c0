/**
 * The plan of a round: which faults begin when, and for how long.
 *
 * Law: a plan is a pure function of its options. What a fault hits is part of the plan where it can be; the order of events between the
 * processes is not.
 */
import type { ProcessName } from './processes.ts'
import type { Random } from './random.ts'
import { seconds } from './text.ts'

/** A fault: what it does, and the milliseconds until it is healed. Those without an end last no time. */
export type Fault =
  | { readonly kind: 'kill' | 'pause'; readonly processes: readonly ProcessName[]; readonly forMs: number }
  | { readonly kind: 'conversion' }
  | { readonly kind: 'power'; readonly seed: number }
  | {
      readonly kind: 'disk'
      readonly code: 'ENOSPC' | 'EIO' | 'EROFS'
      readonly processes: readonly ProcessName[]
      readonly place: DiskPlace
      readonly share: number
      readonly forMs: number
    }
  | { readonly kind: 'clock'; readonly jumpMs: number; readonly forMs: number }
  | { readonly kind: 'flip'; readonly what: FlipTarget; readonly seed: number }
  | { readonly kind: 'unlink'; readonly what: 'open segment' | 'scratch' | 'outbox entry'; readonly seed: number }
  | { readonly kind: 'settings'; readonly change: SettingsChange; readonly seed: number }
  | {
      readonly kind: 'restart'
      readonly process: ProcessName
      readonly environment: Readonly<Record<string, string>>
    }
  | { readonly kind: 'drain'; readonly sendForMs: number }
  | {
      readonly kind: 'bucket'
      readonly fault: 'refused' | 'answer lost' | 'unreadable' | 'slow'
      readonly bucket: number
      readonly share: number
      readonly forMs: number
    }
  | { readonly kind: 'network'; readonly fault: 'error' | 'silence' | 'lost-answer' | 'crawl'; readonly forMs: number }
  | { readonly kind: 'noise'; readonly forMs: number; readonly seed: number }

export type FaultKind = Fault['kind']
export type DiskPlace = 'log' | 'outbox' | 'ledger' | 'snapshots' | 'everything'
export type FlipTarget = 'open segment' | 'sealed segment' | 'outbox entry'
export type SettingsChange = 'age' | 'size' | 'view' | 'destination' | 'formats'

export type Step = { readonly atMs: number; readonly fault: Fault }

export type Plan = { readonly seed: number; readonly round: number; readonly faultsMs: number; readonly steps: readonly Step[] }

/** How often a kind is drawn, compared with the others. */
const weights: Readonly<Record<FaultKind, number>> = {
  kill: 5,
  conversion: 3,
  power: 3,
  disk: 5,
  pause: 2,
  clock: 2,
  bucket: 3,
  network: 2,
  settings: 3,
  restart: 2,
  drain: 2,
  flip: 2,
  unlink: 2,
  noise: 1,
}

export const faultKinds = Object.keys(weights) as FaultKind[]

/** Pause between the beginnings of two faults. Faults overlap. */
const gapMs = { min: 400, max: 2_500 }

export function drawPlan({
  seed,
  round,
  random,
  kinds,
  faultsMs,
}: {
  readonly seed: number
  readonly round: number
  readonly random: Random
  readonly kinds: readonly FaultKind[]
  readonly faultsMs: number
}): Plan {
  const drawn = kinds.flatMap((kind) => Array.from({ length: weights[kind] }, () => kind))
  const steps: Step[] = []
  for (let atMs = random.between(500, 1_500); atMs < faultsMs; atMs += random.between(gapMs.min, gapMs.max)) {
    steps.push({ atMs, fault: drawFault(random.pick(drawn), random) })
  }
  return { seed, round, faultsMs, steps }
}

function drawFault(kind: FaultKind, random: Random): Fault {
  const all: readonly ProcessName[] = ['control', 'ingest', 'delivery']
  const node: readonly ProcessName[] = ['ingest', 'delivery']
  const [seed, forMs] = [random.seed(), random.between(300, 4_000)]
  switch (kind) {
    case 'kill':
      return { kind, processes: random.some(all), forMs: random.between(0, 2_500) }
    case 'pause':
      return { kind, processes: random.some(all), forMs }
    case 'conversion':
      return { kind }
    case 'power':
      return { kind, seed }
    case 'disk':
      return {
        kind,
        code: random.pick(['ENOSPC', 'EIO', 'EIO', 'EROFS']),
        processes: random.some(node),
        place: random.pick(['log', 'log', 'outbox', 'ledger', 'snapshots', 'everything']),
        share: random.pick([0.05, 0.3, 1]),
        forMs,
      }
    case 'clock':
      return { kind, jumpMs: random.pick([-1, 1]) * random.pick([1_500, 90_000, 7_200_000, 172_800_000]), forMs }
    case 'flip':
      return { kind, what: random.pick(['open segment', 'sealed segment', 'sealed segment', 'outbox entry']), seed }
    case 'unlink':
      return { kind, what: random.pick(['open segment', 'scratch', 'outbox entry']), seed }
    case 'settings':
      return { kind, change: random.pick(['age', 'size', 'view', 'view', 'destination', 'formats']), seed }
    case 'restart':
      return { kind, process: random.pick(all), environment: drawEnvironment(random) }
    case 'drain':
      return { kind, sendForMs: random.between(500, 3_000) }
    case 'bucket':
      return {
        kind,
        fault: random.pick(['refused', 'answer lost', 'unreadable', 'slow']),
        bucket: random.between(0, 1),
        share: random.pick([0.2, 1]),
        forMs,
      }
    case 'network':
      return { kind, fault: random.pick(['error', 'silence', 'lost-answer', 'crawl']), forMs }
    case 'noise':
      return { kind, forMs, seed }
  }
}

function drawEnvironment(random: Random): Readonly<Record<string, string>> {
  return {
    INLET_DELIVERY_MEMORY_BYTES: random.pick(['192MiB', '384MiB']),
    INLET_DELIVERY_PARALLEL: String(random.between(1, 3)),
    INLET_MAX_IN_FLIGHT_BYTES: random.pick(['32MiB', '128MiB']),
  }
}

/** Describes a fault in one line. */
export function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case 'kill':
      return `kill ${fault.processes.join(' + ')} for ${seconds(fault.forMs)}`
    case 'pause':
      return `stop ${fault.processes.join(' + ')} (SIGSTOP) for ${seconds(fault.forMs)}`
    case 'conversion':
      return 'kill the conversion processes'
    case 'power':
      return 'power loss'
    case 'disk': {
      const share = fault.share === 1 ? '' : ` (${fault.share * 100} %)`
      return `${fault.code}${share} on ${fault.place} of ${fault.processes.join(' + ')} for ${seconds(fault.forMs)}`
    }
    case 'clock':
      return `clock ${fault.jumpMs > 0 ? '+' : '−'}${seconds(Math.abs(fault.jumpMs))} for ${seconds(fault.forMs)}`
    case 'flip':
      return `flip a bit in ${fault.what === 'sealed segment' ? 'a' : 'an'} ${fault.what}`
    case 'unlink':
      return `unlink ${fault.what === 'scratch' ? 'the scratch files' : `an ${fault.what}`}`
    case 'settings':
      return `change ${fault.change}`
    case 'restart':
      return `restart ${fault.process} with ${Object.entries(fault.environment)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`
    case 'drain':
      return `create an endpoint, send for ${seconds(fault.sendForMs)}, delete it`
    case 'bucket':
      return `bucket ${fault.bucket + 1} ${fault.fault}${fault.share === 1 ? '' : ` (${fault.share * 100} %)`} for ${seconds(fault.forMs)}`
    case 'network':
      return `control unreachable for the node (${fault.fault}) for ${seconds(fault.forMs)}`
    case 'noise':
      return `garbage and slow requests for ${seconds(fault.forMs)}`
  }
}

export function describePlan({ steps }: Plan): readonly string[] {
  return steps.map(({ atMs, fault }) => `+${seconds(atMs).padStart(6)}  ${describeFault(fault)}`)
}
