import { Host } from './host.ts'
import type { Heal, Network } from './network.ts'

/** Addresses of this run: another one on the same machine has others. */
const prefix = `127.${64 + ((process.pid >> 8) % 128)}.${process.pid % 256}`

export class LoopbackNetwork implements Network {
  readonly kind = 'loopback'
  readonly hasNames = false
  readonly hub = new Host('hub', { address: `${prefix}.1`, enter: [] })

  async addHost(name: string, number: number): Promise<Host> {
    return new Host(name, { address: `${prefix}.${number}`, enter: [] })
  }

  addName(): void {}

  cut(): Heal {
    throw new Error('the loopback interface cannot be cut')
  }

  drop(): Heal {
    return this.cut()
  }

  isolate(): Heal {
    return this.cut()
  }

  worsen(): Heal {
    return this.cut()
  }

  async close(): Promise<void> {}
}
