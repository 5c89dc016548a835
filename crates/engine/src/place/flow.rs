//! The assignment of classes of members to sites as a maximum flow: each site takes at most a number of pods, and at most a number of each
//! class. It assigns as many members as any placement can, because what it ignores can only make it harder to place them.

/// A node, or all nodes of a domain that takes one pod.
#[derive(Debug)]
pub(super) struct Site {
    /// The number of pods that the site takes at most.
    pub room: usize,
    /// By class: the number of its pods that the site takes at most.
    pub room_for: Vec<usize>,
}

/// By class and site: the number of pods.
pub(super) type Assignment = Vec<Vec<usize>>;

/// Assigns as many pods as possible, and a class to its first sites where that is possible. `pods` is the number of pods of each class,
/// and `preferred` the sites of each class in the order in which they are tried.
pub(super) fn assign(sites: &[Site], pods: &[usize], preferred: &[Vec<usize>]) -> Assignment {
    let mut flow = Flow {
        sites,
        preferred,
        assigned: vec![vec![0; sites.len()]; pods.len()],
        used: vec![0; sites.len()],
        left: pods.to_vec(),
    };
    while flow.augment() {}
    flow.assigned
}

struct Flow<'a> {
    sites: &'a [Site],
    preferred: &'a [Vec<usize>],
    assigned: Assignment,
    /// By site: the number of assigned pods.
    used: Vec<usize>,
    /// By class: the number of pods without a site.
    left: Vec<usize>,
}

impl Flow<'_> {
    /// Assigns one more pod; other pods may move for it.
    fn augment(&mut self) -> bool {
        let n_classes = self.left.len();
        // By class: the class that takes its place, and the site.
        let mut moved_by: Vec<Option<(usize, usize)>> = vec![None; n_classes];
        let mut order: Vec<usize> = (0..n_classes).filter(|&class| self.left[class] > 0).collect();
        let mut is_seen: Vec<bool> = self.left.iter().map(|&left| left > 0).collect();
        let mut next = 0;
        while let Some(&class) = order.get(next) {
            next += 1;
            for &site in &self.preferred[class] {
                if self.assigned[class][site] >= self.sites[site].room_for[class] {
                    continue;
                }
                if self.used[site] < self.sites[site].room {
                    self.used[site] += 1;
                    self.move_along(class, site, &moved_by);
                    return true;
                }
                for other in 0..n_classes {
                    if self.assigned[other][site] > 0 && !is_seen[other] {
                        is_seen[other] = true;
                        moved_by[other] = Some((class, site));
                        order.push(other);
                    }
                }
            }
        }
        false
    }

    /// A pod of the class gets a place on the site; each class that it moved for gets the place that becomes free.
    fn move_along(&mut self, mut class: usize, site: usize, moved_by: &[Option<(usize, usize)>]) {
        self.assigned[class][site] += 1;
        while let Some((next, freed)) = moved_by[class] {
            self.assigned[class][freed] -= 1;
            self.assigned[next][freed] += 1;
            class = next;
        }
        self.left[class] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_move_so_that_one_more_finds_a_site() {
        let sites = [Site { room: 1, room_for: vec![1, 1] }, Site { room: 1, room_for: vec![1, 0] }];
        let assigned = assign(&sites, &[1, 1], &[vec![0, 1], vec![0]]);
        assert_eq!(assigned, [vec![0, 1], vec![1, 0]]);
        let sites = [Site { room: 3, room_for: vec![2, 2] }];
        let assigned = assign(&sites, &[2, 2], &[vec![0], vec![0]]);
        assert_eq!(assigned.concat().iter().sum::<usize>(), 3);
    }
}
