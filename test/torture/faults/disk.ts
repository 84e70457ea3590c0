/** A disk that is full, broken or read-only, for some paths and processes, for a time. */
import type { FileFault, FileOperation } from '../child/steering.ts'
import type { DiskPlace, Fault } from '../plan.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

const operations: Readonly<Record<FileFault['code'], readonly FileOperation[]>> = {
  ENOSPC: ['create', 'write'],
  EIO: ['open', 'create', 'write', 'read', 'sync', 'names', 'list'],
  EROFS: ['create', 'write', 'names'],
}

const paths: Readonly<Record<DiskPlace, string>> = {
  log: '/node/wal/',
  outbox: '/node/outbox/',
  ledger: '/node/parked/',
  snapshots: '-snapshot\\.ndjson',
  everything: '/node/',
}

export function disk(fault: Extract<Fault, { kind: 'disk' }>, { processes }: Rig): Heal {
  const { code, share } = fault
  const made: FileFault = { code, share, operations: operations[code], matches: paths[fault.place] }
  processes.steer(fault.processes, (steering) => ({ ...steering, files: [...steering.files, made] }))
  return () =>
    processes.steer(fault.processes, (steering) => ({ ...steering, files: steering.files.filter((file) => file !== made) }))
}
