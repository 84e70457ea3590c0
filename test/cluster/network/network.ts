/**
 * The network of the cluster.
 *
 * `namespaces`: each host has a network namespace, and this program routes between them. A cut drops packets silently, as a broken
 * network does: connections stay open and nothing arrives. `loopback`: each host is an address of the loopback interface, and nothing
 * can be cut.
 */
import type { Host } from './host.ts'
import { LoopbackNetwork } from './loopback.ts'
import { NamespaceNetwork } from './namespaces.ts'

export type NetworkKind = 'namespaces' | 'loopback'

export type Heal = () => void

export type LinkQuality = { readonly kilobitsPerSecond: number; readonly lossPercent: number }

export interface Network {
  readonly kind: NetworkKind
  /** This program: clients, and the operator. */
  readonly hub: Host
  /** Whether `addName` has an effect. */
  readonly hasNames: boolean
  /** Lets all hosts know an address by a name, as a hosts file does. */
  addName(name: string, address: string): void
  /** Adds a host. Its number is the last part of its address. */
  addHost(name: string, number: number): Promise<Host>
  /** Drops everything between two hosts. */
  cut(one: Host, other: Host): Heal
  /** Drops what a host receives from another one, which still receives what that host sends. */
  drop(host: Host, from: Host): Heal
  /** Drops everything from and to a host. */
  isolate(host: Host): Heal
  /** Makes the link of a host slow and lossy, in both directions. */
  worsen(host: Host, quality: LinkQuality): Heal
  close(): Promise<void>
}

export function createNetwork(kind: NetworkKind): Network {
  return kind === 'namespaces' ? new NamespaceNetwork() : new LoopbackNetwork()
}
