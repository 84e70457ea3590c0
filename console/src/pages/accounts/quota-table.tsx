import type { QuotaUse } from '../../api/accounts.ts'
import { Meter } from '../../design/meter.tsx'
import { Table } from '../../design/table.tsx'
import { quotaTexts } from './quota-texts.ts'

/** Each quota, with how much of it is used. */
export function QuotaTable({ use: { quotas } }: { readonly use: QuotaUse }) {
  return (
    <Table
      label="Quotas"
      columns={[
        { title: 'Quota', cell: ({ label }) => <strong>{label}</strong> },
        {
          title: 'Used',
          cell: ({ name, label, format }) => {
            const { used, limit } = quotas[name]
            return <Meter label={label} value={used} max={limit} text={`${format(used)} of ${format(limit)}`} />
          },
        },
        { title: 'Counts', cell: ({ hint }) => hint, minor: true },
      ]}
      rows={quotaTexts}
      keyOf={({ name }) => name}
    />
  )
}
