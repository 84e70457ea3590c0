import { Host } from './host.ts'
import type { Heal, Network } from './network.ts'

export class LoopbackNetwork implements Network {
  readonly kind = 'loopback'
  readonly hasNames = false
  readonly hub = new Host('hub', { address: '127.0.77.1', enter: [] })

  async addHost(name: string, number: number): Promise<Host> {
    return new Host(name, { address: `127.0.77.${number}`, enter: [] })
  }

  addName(): void {}

  cut(): Heal {
    throw new Error('the loopback interface cannot be cut')
  }

  isolate(): Heal {
    throw new Error('the loopback interface cannot be cut')
  }

  async close(): Promise<void> {}
}
