import style from './skeleton.module.css'

/** Holds the place of what is loading, so that nothing moves when it arrives. `rows` in lines of a table. */
export function Skeleton({
  rows = 1,
  height = 'line',
}: {
  readonly rows?: number
  readonly height?: 'line' | 'figure' | 'chart'
}) {
  return (
    <div className={style.stack} role="status" aria-label="Loading" aria-busy="true">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
        <div key={row} className={style.bar} data-height={height} />
      ))}
    </div>
  )
}
