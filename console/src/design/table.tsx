import { type Key, type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { formatCount } from './format.ts'
import style from './table.module.css'

export type TableColumn<Row> = {
  /** Empty for a column of actions. */
  readonly title: ReactNode
  readonly cell: (row: Row) => ReactNode
  /** Figures are aligned at the right. */
  readonly figure?: boolean
  /** Left out where the table is narrow. */
  readonly minor?: boolean
}

type TableProps<Row> = {
  /** Name of the listed rows, for screen readers. */
  readonly label: string
  readonly columns: readonly TableColumn<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => Key
  /** Shown if there are no rows. */
  readonly empty?: ReactNode
  /** Below the rows. */
  readonly footer?: ReactNode
  /** Pages that are left to load, below the rows as well. */
  readonly more?: MorePages
  /** How many of the rows stand there at once, for long lists that are known whole: a button shows as many more. */
  readonly rowsAtOnce?: number
}

type MorePages = { readonly hasNextPage: boolean; readonly isFetchingNextPage: boolean; fetchNextPage(): unknown }

/** Rows under one head. It scrolls sideways by itself, so that a page never does. */
export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  empty,
  footer,
  more,
  rowsAtOnce = Number.POSITIVE_INFINITY,
}: TableProps<Row>) {
  const [rowsMax, setRowsMax] = useState(rowsAtOnce)
  if (rows.length === 0 && empty !== undefined) return empty
  const marks = (column: TableColumn<Row>) => ({
    'data-figure': column.figure || undefined,
    'data-minor': column.minor || undefined,
  })
  return (
    <div className={style.frame}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
      <section className={style.scroll} aria-label={label} tabIndex={0}>
        <table className={style.table}>
          <thead>
            <tr>
              {columns.map((column, index) =>
                column.title === '' ? (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
                  <td key={index} {...marks(column)} />
                ) : (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
                  <th key={index} scope="col" {...marks(column)}>
                    {column.title}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, rowsMax).map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
                  <td key={index} {...marks(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length > rowsMax && (
        <div className={style.footer}>
          <Button size="small" onClick={() => setRowsMax(rowsMax + rowsAtOnce)}>
            Show more
          </Button>
          <span className={style.rest}>{formatCount(rows.length - rowsMax)} are left</span>
        </div>
      )}
      {footer && <div className={style.footer}>{footer}</div>}
      {more?.hasNextPage && (
        <div className={style.footer}>
          <Button size="small" busy={more.isFetchingNextPage} onClick={() => void more.fetchNextPage()}>
            Load more
          </Button>
        </div>
      )}
    </div>
  )
}
