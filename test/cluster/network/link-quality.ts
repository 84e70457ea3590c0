/**
 * A link that is slow and loses packets: a token bucket for what an interface sends, and random drops of what it receives.
 *
 * The kernel of a CI machine may have no `netem`. The bucket has a queue of 300 ms, so latency grows with the load, as on a real slow link.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { commandAt } from '../../../tools/services/processes.ts'
import type { Host } from './host.ts'
import type { Heal, LinkQuality } from './network.ts'

/** Whether packets can be dropped at random here. `tc` is where `ip` is. */
export const canWorsenLinks = existsSync('/usr/sbin/iptables')

/** Worsens one end of a link: what its interface sends is slow, and some of what it receives is lost. */
export function worsenEnd({ place }: Host, device: string, { kilobitsPerSecond, lossPercent }: LinkQuality): Heal {
  const run = (command: string) => {
    const [program = '', ...args] = command.split(' ')
    execFileSync(...commandAt(place, program, args), { stdio: ['ignore', 'ignore', 'pipe'] })
  }
  const loss = `-i ${device} -m statistic --mode random --probability ${lossPercent / 100} -j DROP`
  const changeLoss = (verb: '-A' | '-D') => {
    for (const program of ['iptables', 'ip6tables']) run(`${program} -t mangle ${verb} PREROUTING ${loss}`)
  }
  run(`tc qdisc replace dev ${device} root tbf rate ${kilobitsPerSecond}kbit burst 8kb latency 300ms`)
  changeLoss('-A')
  return () => {
    changeLoss('-D')
    run(`tc qdisc del dev ${device} root`)
  }
}
