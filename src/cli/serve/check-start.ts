import { existsSync } from 'node:fs'
import { ingestAddressesOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { assertCanListen } from '#lib/assert-can-listen.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { assertCanJoin } from '#node/join-token.ts'
import type { ChildName } from './child-environment.ts'

/**
 * Throws what would make the start of a process fail, before any is started: a start that cannot work must not create anything, and a
 * second instance must not reach the data, the database or control of the first.
 */
export async function checkStart(config: Config, children: readonly ChildName[]): Promise<void> {
  const { ingestLock, deliveryLock } = config.paths
  for (const lock of [ingestLock, deliveryLock]) if (existsSync(lock)) lockExclusively(lock)[Symbol.dispose]()
  // Before delivery creates a credential, which ingest would take for one that control knows. Control beside it creates what lets it join.
  if (!children.includes('control')) await assertCanJoin(config, system)
  const all = listeners(config, children)
  for (const [index, [setting, { host, port }]] of all.entries()) {
    const [other] = all.slice(0, index).find(([, used]) => used.host === host && used.port === port && port !== 0) ?? []
    if (other !== undefined)
      throw new UserError(`${setting} and ${other} are both ${host}:${port}: set another port for one of them`)
  }
  for (const [setting, address] of all) await assertCanListen(address, setting)
}

function listeners(config: Config, children: readonly ChildName[]): readonly (readonly [string, ListenAddress])[] {
  const { controlListen, nodeApiListen } = config
  const { http, mqtt } = ingestAddressesOf(config)
  return [
    ...(children.includes('control') ? [['INLET_CONTROL_LISTEN', controlListen] as const] : []),
    ...(children.includes('control') ? [['INLET_NODE_API_LISTEN', nodeApiListen] as const] : []),
    ...(children.includes('ingest') ? [['INLET_INGEST_LISTEN', http] as const] : []),
    ...(children.includes('ingest') && mqtt !== null ? [['INLET_MQTT_LISTEN', mqtt] as const] : []),
  ]
}
