/** Makes a data directory one of a node that control knows, as the first start of the node does. */
import type { Config } from '#config/config.ts'
import { writeDurably } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { nodeToken } from './control.ts'

export async function registerMachine(config: Config, nodeApiUrl: string, region: string): Promise<void> {
  const nodeId = newId()
  await writeDurably(system.files, config.paths.nodeId, Buffer.from(`${nodeId}\n`))
  const credential = await NodeCredential.open(nodeId, config.paths.nodeCredential, system)
  const client = new ControlClient({ ...system, url: nodeApiUrl, credential, timeoutMs: 5_000 })
  const node = { region, ipv4: [], ipv6: [], ingest_address: '' }
  const logger = createLogger('test', 'silent')
  await new Registration({ client, credential, joinSecret: nodeToken, node, logger }).register(
    new AbortController().signal,
    false,
  )
}
