/** A cut between two hosts. If it is asymmetric, only one of them does not receive what the other one sends. */
import type { Host } from '../network/host.ts'
import type { Heal, Network } from '../network/network.ts'

/** `out`: the other host does not receive what the first one sends. `in`: the first one does not receive what the other one sends. */
export type Way = 'both' | 'out' | 'in'

export function cutWay(network: Network, one: Host, other: Host, way: Way): Heal {
  if (way === 'both') return network.cut(one, other)
  return way === 'out' ? network.drop(other, one) : network.drop(one, other)
}

export function textOfCut(one: string, other: string, way: Way): string {
  if (way === 'both') return `cut ${one} off from ${other}`
  return way === 'out' ? `drop what ${one} sends to ${other}` : `drop what ${other} sends to ${one}`
}
