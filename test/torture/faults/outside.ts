/** Faults around the node: its buckets, its way to control, and its clients. */

import type { Fault as ProxyFault } from '../../support/fault-proxy.ts'
import type { BucketFault } from '../child/steering.ts'
import { makeNoise } from '../load/noise.ts'
import type { Fault } from '../plan.ts'
import { Random } from '../random.ts'
import { buckets, type Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

const everyPath = '/internal/'

const proxyFaults: Readonly<Record<Extract<Fault, { kind: 'network' }>['fault'], ProxyFault>> = {
  error: { kind: 'answer', status: 503, code: 'ServiceUnavailable' },
  silence: { kind: 'silence' },
  'lost-answer': { kind: 'lost-answer' },
  crawl: { kind: 'crawl', bytesPerSecond: 2_000 },
}

export function bucket(fault: Extract<Fault, { kind: 'bucket' }>, { processes }: Rig): Heal {
  const name = buckets[fault.bucket] ?? buckets[0]
  const made: BucketFault = { kind: fault.fault, bucket: name, share: fault.share, delayMs: 400 }
  processes.steer(['delivery'], (steering) => ({ ...steering, buckets: [...steering.buckets, made] }))
  return () =>
    processes.steer(['delivery'], (steering) => ({ ...steering, buckets: steering.buckets.filter((other) => other !== made) }))
}

export function network({ fault }: Extract<Fault, { kind: 'network' }>, { proxy }: Rig): Heal {
  proxy.break(everyPath, proxyFaults[fault], { methods: ['GET', 'POST'] })
  return () => proxy.heal(everyPath)
}

export function noise({ forMs, seed }: Extract<Fault, { kind: 'noise' }>, rig: Rig): Heal {
  const { ingestUrl, apiKey } = rig
  const random = new Random(seed)
  const endpointId = random.pick(rig.endpoints).id
  rig.inBackground('noise', () => makeNoise({ ingestUrl, apiKey, endpointId, random, forMs }))
  return undefined
}
