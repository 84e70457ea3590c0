/** Faults of processes: SIGKILL, SIGSTOP, and restarts with another configuration. */
import type { Fault } from '../plan.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

/** The deadline of the processes themselves is 20 s. */
const stopMsMax = 30_000

export async function kill({ processes: names }: Extract<Fault, { kind: 'kill' | 'pause' }>, { processes }: Rig): Promise<Heal> {
  await processes.kill(names)
  return () => processes.start(names)
}

export function killConversions({ processes }: Rig): Heal {
  processes.killConversions()
  return undefined
}

export function pause({ processes: names }: Extract<Fault, { kind: 'kill' | 'pause' }>, { processes }: Rig): Heal {
  processes.pause(names)
  return () => processes.resume(names)
}

export function restart({ process: name, environment }: Extract<Fault, { kind: 'restart' }>, rig: Rig): Heal {
  rig.processes.configure(environment)
  rig.inBackground(`restart ${name}`, async () => {
    await rig.processes.stop(name, stopMsMax)
    rig.processes.start([name])
  })
  return undefined
}
