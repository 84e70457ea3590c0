import type { Node } from '../../api/nodes.ts'
import { formatBytes } from '../../design/format.ts'
import { Meter } from '../../design/meter.tsx'

/** How full the disk with the write-ahead log is. */
export function DiskMeter({ disk }: Pick<Node, 'disk'>) {
  if (disk === null) return 'not reported yet'
  const { free_bytes, total_bytes } = disk
  return (
    <Meter
      label="Disk"
      value={total_bytes - free_bytes}
      max={total_bytes}
      text={`${formatBytes(free_bytes)} free of ${formatBytes(total_bytes)}`}
    />
  )
}
