import { Time } from '../design/time.tsx'

/** Said beside whatever is made from commits, while the database may lack some. */
export function MayLackCommits({ since }: { readonly since: string }) {
  return (
    <>
      Some of what was delivered since <Time at={since} exact /> may be missing: the database may lack its commits. Unless control
      records them within minutes, the operator has to run <code>inlet commits rebuild</code>. The files are in the bucket.
    </>
  )
}
