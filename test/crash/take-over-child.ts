/** The first part of a takeover, in a process that the test kills: `node take-over-child.ts NODE`, with the settings of a node. */
import { adoptCopy } from '#cli/serve/adopt-copy.ts'
import { environment, readConfig } from '#config/config.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'

const [nodeId = ''] = process.argv.slice(2)
const own = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('INLET_')))
// Timers of the system do not keep a process alive.
setInterval(() => undefined, 1_000)
const stopping = new AbortController().signal
await adoptCopy({ config: readConfig(own), nodeId, logger: createLogger('test', 'silent'), clock: system.clock, stopping })
process.exit()
