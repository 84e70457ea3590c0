import { useState } from 'react'
import type { QueryResult } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { ColumnHead, isFigure, Value } from '../../design/value.tsx'

/** Rows that are drawn at once: each is an element, and a browser slows down with tens of thousands. */
const rowsAtOnce = 100

type Row = QueryResult['rows'][number]

/** The rows as the API returned them. */
export function ResultTable({ result: { columns, rows } }: { readonly result: QueryResult }) {
  const [shown, setShown] = useState(rowsAtOnce)
  const cells = columns.map(
    ({ name, type }, index): TableColumn<Row> => ({
      title: <ColumnHead name={name} type={type} />,
      figure: isFigure(type),
      cell: (row) => <Value value={row[index]} />,
    }),
  )
  return (
    <Table
      label="Rows"
      columns={cells}
      rows={rows.slice(0, shown)}
      keyOf={(row) => rows.indexOf(row)}
      footer={
        shown < rows.length ? (
          <Button size="small" onClick={() => setShown(shown + rowsAtOnce * 10)}>
            Show more rows
          </Button>
        ) : undefined
      }
    />
  )
}
